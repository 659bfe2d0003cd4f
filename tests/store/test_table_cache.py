"""Tables that are made once."""

import polars as pl

from evenhand.store.cache import cached_table


def test_a_table_is_made_once_for_what_it_depends_on(tmp_path):
    made = []

    def make():
        made.append(1)
        return pl.DataFrame({"made": [len(made)]})

    first = cached_table(tmp_path, "t", ["a", 1], make)
    assert cached_table(tmp_path, "t", ["a", 1], make).equals(first)
    assert cached_table(tmp_path, "t", ["a", 2], make)["made"].to_list() == [2]
    for file in tmp_path.glob("*.parquet"):
        file.write_bytes(b"torn")
    assert cached_table(tmp_path, "t", ["a", 1], make)["made"].to_list() == [3]
