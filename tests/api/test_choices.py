"""Options that several verbs have."""

import pytest

from evenhand.api.choices import checked_level, one_of
from evenhand.core.errors import InputError


def test_a_choice_is_one_of_those_or_none():
    assert one_of("unit", "line", ("sentence", "line")) == "line"
    assert one_of("unit", None, ("sentence", "line")) is None
    with pytest.raises(InputError) as error:
        one_of("unit", "word", ("sentence", "line"))
    assert str(error.value) == "--unit 'word'. Accepted: sentence, line. What to do: use one of these."


def test_a_level_is_a_share_above_0_and_below_1():
    assert checked_level(0.9) == 0.9
    assert checked_level(None) == 0.95
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError) as error:
            checked_level(level)
        assert str(error.value) == f"--level {level:g}. Accepted: above 0 and below 1. What to do: try 0.95."
