import numpy as np

from evenhand.core.seeds import RowUniforms, make_generator, row_uniforms


def test_a_position_has_one_number_whatever_the_length():
    assert np.array_equal(row_uniforms(0, "p", 1, 4), row_uniforms(0, "p", 1, 9)[:4])


def test_seed_prompt_and_sample_each_change_the_numbers():
    base = row_uniforms(0, "p", 0, 8)
    for other in (row_uniforms(1, "p", 0, 8), row_uniforms(0, "q", 0, 8), row_uniforms(0, "p", 1, 8)):
        assert not np.array_equal(base, other)


def test_one_generator_for_all_rows_draws_the_same():
    draw = RowUniforms(7)
    # An odd count leaves numbers in the generator's buffer, which the next row must not get.
    for prompt, sample, count in (("p", 0, 5), ("p", 1, 3), ("", 0, 0), ("\ud800", 2, 64), ("p", 0, 5)):
        assert np.array_equal(draw(prompt, sample, count), row_uniforms(7, prompt, sample, count))


def test_uniforms_are_uniform():
    # Mean of n uniforms: 1/2 with standard error 1 / sqrt(12 n) = 0.0029 for n = 10,000.
    values = np.concatenate([row_uniforms(0, f"p{i}", 0, 10) for i in range(1000)])
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 5 * 0.0029


def test_generators_are_named():
    assert make_generator(0, "a").random() == make_generator(0, "a").random()
    assert make_generator(0, "a").random() != make_generator(0, "b").random()
