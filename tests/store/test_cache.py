import sqlite3

from evenhand.store.cache import ContentCache, clear_cache


def test_values_come_back_by_key(tmp_path):
    cache = ContentCache(tmp_path)
    cache.put_many("scores", {f"k{i}": [i, None, "x"] for i in range(2000)})
    found = cache.get_many("scores", [f"k{i}" for i in range(1500, 2500)])
    assert len(found) == 500
    assert found["k1999"] == [1999, None, "x"]
    cache.close()


def test_kinds_do_not_mix_and_the_file_outlives_the_process(tmp_path):
    first = ContentCache(tmp_path)
    first.put_many("scores", {"k": 1})
    first.close()
    second = ContentCache(tmp_path)
    assert second.get_many("scores", ["k"]) == {"k": 1}
    assert second.get_many("generations", ["k"]) == {}
    second.close()


def test_a_damaged_cache_is_a_slower_run_not_a_failed_one(tmp_path):
    (tmp_path / "cache.sqlite").write_bytes(b"not a database" * 100)
    cache = ContentCache(tmp_path)
    cache.put_many("scores", {"k": 1})
    assert cache.get_many("scores", ["k"]) == {}


def test_a_cache_that_breaks_in_the_middle_is_left_alone(tmp_path):
    cache = ContentCache(tmp_path)
    sqlite3.connect(tmp_path / "cache.sqlite").execute("DROP TABLE scores").connection.close()
    cache.put_many("scores", {"k": 1})
    assert cache.get_many("scores", ["k"]) == {}


def test_clear_frees_the_file(tmp_path):
    cache = ContentCache(tmp_path)
    cache.put_many("scores", {"k": "x" * 10_000})
    cache.close()
    assert clear_cache(tmp_path) > 10_000
    assert clear_cache(tmp_path) == 0


def test_a_damaged_row_is_a_miss(tmp_path):
    cache = ContentCache(tmp_path)
    cache.put_many("scores", {"good": 1, "bad": 2})
    other = sqlite3.connect(tmp_path / "cache.sqlite")
    with other:
        other.execute("UPDATE scores SET value = 'not json' WHERE key = 'bad'")
    other.close()
    assert cache.get_many("scores", ["good", "bad"]) == {"good": 1}
    cache.close()


def test_a_rate_is_a_positive_number_or_none(tmp_path):
    cache = ContentCache(tmp_path)
    cache.put_many("rates", {"fast": 2.5, "odd": 0.0, "damaged": "x"})
    assert [cache.rate(key) for key in ("fast", "odd", "damaged", "never")] == [2.5, None, None, None]
    cache.close()
