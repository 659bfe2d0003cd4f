import numpy as np

from evenhand.core.seeds import generator, row_uniforms


def test_a_position_has_one_number_whatever_the_length():
    assert np.array_equal(row_uniforms(0, "p", 1, 4), row_uniforms(0, "p", 1, 9)[:4])


def test_seed_prompt_and_sample_each_change_the_numbers():
    base = row_uniforms(0, "p", 0, 8)
    for other in (row_uniforms(1, "p", 0, 8), row_uniforms(0, "q", 0, 8), row_uniforms(0, "p", 1, 8)):
        assert not np.array_equal(base, other)


def test_uniforms_are_uniform():
    # Mean of n uniforms: 1/2 with standard error 1 / sqrt(12 n) = 0.0029 for n = 10,000.
    values = np.concatenate([row_uniforms(0, f"p{i}", 0, 10) for i in range(1000)])
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 5 * 0.0029


def test_generators_are_named():
    assert generator(0, "a").random() == generator(0, "a").random()
    assert generator(0, "a").random() != generator(0, "b").random()
