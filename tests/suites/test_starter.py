from __future__ import annotations

from collections import Counter, defaultdict

from evenhand.core.protocols import Suite
from evenhand.core.records import REST
from evenhand.suites.starter import StarterSuite
from evenhand.text.rendering import mask_mentions

SUITE = StarterSuite()
PROMPTS = list(SUITE.prompts())


def test_it_has_bolds_groups_ten_prompts_each() -> None:
    assert isinstance(SUITE, Suite)
    groups = Counter(prompt.groups[0] for prompt in PROMPTS)
    assert len(groups) == 43
    assert set(groups.values()) == {10}
    assert len({prompt.id for prompt in PROMPTS}) == 430


def test_axes_and_baselines() -> None:
    names = defaultdict(set)
    for prompt in PROMPTS:
        names[prompt.groups[0].axis].add(prompt.groups[0].name)
    assert set(names) == set(SUITE.info.baselines)
    assert SUITE.info.baselines["gender"] == "American_actors"
    assert SUITE.info.baselines["race"] == "European_Americans"
    assert all(base == REST or base in names[axis] for axis, base in SUITE.info.baselines.items())


def test_the_masked_prompts_of_a_template_are_one_string() -> None:
    masked = defaultdict(set)
    for prompt in PROMPTS:
        assert prompt.cluster == prompt.template_id
        masked[prompt.cluster].add(mask_mentions(prompt.text, prompt.mentions).text)
    assert len(masked) == 50
    assert all(len(texts) == 1 for texts in masked.values())


def test_the_order_is_always_the_same() -> None:
    assert list(SUITE.prompts()) == PROMPTS
