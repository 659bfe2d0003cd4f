import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.digests import canonical_json, digest, digests, file_digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_equal_values_have_equal_digests(value):
    assert digest(value) == digest(value)
    assert len(digest(value, size=5)) == 10


def test_order_of_keys_does_not_matter_and_order_of_lists_does():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_one_and_true_and_one_point_zero_differ():
    assert len({digest(1), digest(True), digest(1.0), digest("1")}) == 4


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(ValueError, match="Out of range float values"):
        canonical_json([value])


def test_file_digest_is_of_the_bytes(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"same")
    second.write_bytes(b"same")
    assert file_digest(first) == file_digest(second)
    second.write_bytes(b"other")
    assert file_digest(first) != file_digest(second)


@given(first=JSON, others=st.lists(st.text(st.characters(exclude_categories=()))))
def test_many_digests_are_those_of_one_at_a_time(first, others):
    assert digests(first, others) == [digest([first, other]) for other in others]
