import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.audits.generator import SHARD_PROMPTS, PromptShard, SampleTier, add_tier, plan_shards
from evenhand.core.errors import RunFolderError

GROWTH = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3)), min_size=1, max_size=4).map(
    lambda steps: [
        SampleTier(sum(limit for limit, _ in steps[: i + 1]) + 1, sum(more for _, more in steps[: i + 1]) + 1)
        for i in range(len(steps))
    ]
)


def _items(shards):
    return [
        (row, sample)
        for shard in shards
        for row in range(shard.start, shard.stop)
        for sample in shard.samples
    ]


def test_a_plan_is_cut_into_shards_of_64_prompts():
    assert plan_shards(130, [SampleTier(None, 2)]) == [
        PromptShard(0, 64, range(2)),
        PromptShard(64, 128, range(2)),
        PromptShard(128, 130, range(2)),
    ]


def test_more_samples_add_shards_and_leave_the_old_ones():
    before = plan_shards(70, [SampleTier(None, 2)])
    after = plan_shards(70, [SampleTier(None, 2), SampleTier(None, 5)])
    assert after == [*before, PromptShard(0, 64, range(2, 5)), PromptShard(64, 70, range(2, 5))]


def test_a_larger_limit_adds_prompts_and_fills_up_samples():
    after = plan_shards(10, [SampleTier(4, 2), SampleTier(None, 3)])
    assert after == [
        PromptShard(0, 4, range(2)),
        PromptShard(0, 4, range(2, 3)),
        PromptShard(4, 10, range(3)),
    ]


@given(st.integers(1, 200), GROWTH)
def test_every_item_once_whatever_the_growth(prompts, tiers):
    shards = plan_shards(prompts, tiers)
    items = _items(shards)
    end = min(tiers[-1].limit, prompts)
    assert sorted(items) == [(row, sample) for row in range(end) for sample in range(tiers[-1].samples)]
    assert all(shard.stop - shard.start <= SHARD_PROMPTS for shard in shards)
    # Growing keeps the finished shards as they are.
    assert plan_shards(prompts, tiers[:-1]) == shards[: len(plan_shards(prompts, tiers[:-1]))]


def test_a_run_may_grow_but_not_shrink():
    assert add_tier([SampleTier(10, 5)], SampleTier(10, 5)) == (SampleTier(10, 5),)
    assert add_tier([SampleTier(10, 5)], SampleTier(None, 5)) == (SampleTier(10, 5), SampleTier(None, 5))
    for smaller in (SampleTier(10, 4), SampleTier(9, 5)):
        with pytest.raises(RunFolderError, match="already holds 10 prompts x 5 samples"):
            add_tier([SampleTier(10, 5)], smaller)
    with pytest.raises(RunFolderError, match="already holds all prompts x 5 samples"):
        add_tier([SampleTier(None, 5)], SampleTier(100, 5))
