"""The kernel against its slow twin, on every cell."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.corpus.lists import SMALL, wide
from tests.oracles.corpus_counts import count

from evenhand.corpus.scan_kernel import PADDING, is_dense
from evenhand.corpus.scanner import BlockLayout, CountingConfig, Scanner
from evenhand.corpus.term_matcher import build_vocabulary

WIDE = wide()
LISTS = {"dense": SMALL, "sparse": WIDE}
BUILT = {name: build_vocabulary(terms, "words") for name, terms in LISTS.items()}
WORDS = [
    *[
        "happy",
        "joy",
        "fear",
        "AFRAID",
        "she",
        "Her",
        "he",
        "MAN",
        "father",
        "black",
        "african",
        "american",
        "americans",
        "i",
        "99",
        "x",
        "happily",
    ],
    *(
        "mother-in-law",
        "MA'AM",
        "ma\u2019am",
        "scared to death",
        "scared\tto  death",
        "black  man",
        "black, man",
    ),
    *(
        "Über-Froh",
        "u\u0308ber-froh",
        "STRASSE",
        "stra\u00dfe",
        "Straẞe",
        "\u00c9l\u00e8ve",
        "e\u0301le\u0300ve",
        "élèveur",
    ),
    *(
        "incomprehensibilities",
        "Incomprehensibilitiez",
        "a" * 40,
        "a" * 41,
        "snake_case",
        "\u212aing",
        "日本語",
        "ім'я",
    ),
    *(
        "\u201chappy\u201d",
        "fear\u2014joy",
        "joy\u2019s",
        "#joy",
        "j\u00adoy",
        "\U0001f600joy",
        "\U00020000",
        "हिन्दी",
    ),
]
GLUE = [
    " ",
    " ",
    " ",
    "\n",
    ". ",
    "? ",
    "! ",
    ".",
    ", ",
    "\n\n",
    "\n \t\r\n",
    "\r\n",
    "...",
    "-",
    "'",
    "\t",
    "",
    "\x00",
    " " * 20,
]
text = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GLUE)), max_size=60).map(
    lambda pairs: "".join(word + glue for word, glue in pairs)
)
quick = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def check(counts, expected, terms, *, distinct):
    """Every cell of the counts against the twin's, by name."""
    emotions = list(terms.emotions)
    assert counts.units == expected["units",]
    assert counts.words == expected["words",]
    assert counts.with_group == expected["any", "*"]
    counts = totals(counts, terms)
    assert counts.units == expected["units",]
    for i, emotion in enumerate(emotions):
        assert counts.emotions[i] == expected["emotion", emotion]
        for j, group in enumerate(terms.groups):
            assert counts.flags[i, j] == expected["flag", emotion, group.axis, group.name]
            if distinct:
                assert counts.distinct[i, j] == expected["distinct", emotion, group.axis, group.name]
        for j, axis in enumerate(terms.axes):
            assert counts.emotion_axes[i, j] == expected["axis", emotion, axis]
    for j, group in enumerate(terms.groups):
        assert counts.groups[j] == expected["flag", "*", group.axis, group.name]
    for j, axis in enumerate(terms.axes):
        assert counts.axes[j] == expected["axis", "*", axis]


def totals(counts, terms):
    """The sums of the blocks, by what they count."""
    layout = BlockLayout(len(terms.emotions), len(terms.groups), len(terms.axes))
    return layout.split(counts.blocks.sum(axis=0))


def scan_bytes(blocks, vocabulary, way, *, is_records=False):
    """The counts of a stream of bytes."""
    scanner = Scanner(vocabulary, way, is_records=is_records)
    for block in blocks:
        scanner.feed(block)
    return scanner.finish()


def pieces(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)] if size else [data]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("unit", ["sentence", "line", "document"])
@quick
@given(text=text, size=st.sampled_from([0, 1, 7, 64, 700]), distinct=st.booleans())
def test_text_equals_the_slow_twin(kind, unit, text, size, distinct):
    way = CountingConfig(unit=unit, is_distinct=distinct)
    counts = scan_bytes(pieces(text.encode(), size), BUILT[kind], way)
    check(counts, count([text], LISTS[kind], unit=unit), LISTS[kind], distinct=distinct)


@pytest.mark.parametrize("unit", ["sentence", "line", "document"])
@quick
@given(texts=st.lists(text, max_size=5), distinct=st.booleans())
def test_records_equal_the_slow_twin(unit, texts, distinct):
    data = b"".join(piece.encode() + b"\xff" for piece in texts)
    counts = scan_bytes(
        [data], BUILT["dense"], CountingConfig(unit=unit, is_distinct=distinct), is_records=True
    )
    expected = count(texts, SMALL, unit="record" if unit == "document" else unit)
    check(counts, expected, SMALL, distinct=distinct)


@quick
@given(data=st.binary(max_size=300), size=st.sampled_from([0, 1, 50]), word=st.sampled_from(WORDS))
def test_any_bytes_equal_the_slow_twin(data, size, word):
    data = data + word.encode() + data + b" " + word.encode()
    counts = scan_bytes(pieces(data, size), BUILT["dense"], CountingConfig(is_distinct=True))
    check(counts, count([data.decode("utf-8", "replace")], SMALL), SMALL, distinct=True)


@quick
@given(text=text, size=st.sampled_from([0, 5, 64]), unit=st.sampled_from(["sentence", "line", "document"]))
def test_the_paper_rule_equals_the_slow_twin(text, size, unit):
    counts = scan_bytes(
        pieces(text.encode(), size),
        build_vocabulary(SMALL, "paper"),
        CountingConfig(unit=unit, rule="paper", is_distinct=True),
    )
    check(counts, count([text], SMALL, unit=unit, rule="paper"), SMALL, distinct=True)


def test_the_paper_rule_takes_a_few_bytes_of_memory_per_byte_of_a_long_record():
    record = b"she was happy, " * (1 << 18) + b"\xff"
    way = CountingConfig(unit="document", rule="paper", is_distinct=True, samples=2)
    scanner = Scanner(build_vocabulary(SMALL, "paper"), way, is_records=True)
    tracemalloc.start()
    try:
        scanner.feed(record, [0])
        counts = scanner.finish()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counts.units == 1
    assert peak < 8 * len(record)


@pytest.mark.parametrize("filling", ["word ", "a", "日", "、", "é", ". ", "- "])
def test_a_line_longer_than_any_buffer(filling):
    middle = filling * 20_000
    text = f"happy she {middle} fear he{middle}black man joy"
    for kind, terms in LISTS.items():
        counts = scan_bytes(pieces(text.encode(), 4096), BUILT[kind], CountingConfig(is_distinct=True))
        check(counts, count([text], terms), terms, distinct=True)


def test_long_text_crosses_stretches():
    rng = np.random.default_rng(5)
    text = "".join(
        WORDS[i] + GLUE[j]
        for i, j in zip(
            rng.integers(len(WORDS), size=20_000), rng.integers(len(GLUE), size=20_000), strict=True
        )
    )
    for kind, terms in LISTS.items():
        counts = scan_bytes([text.encode()], BUILT[kind], CountingConfig(is_distinct=True))
        check(counts, count([text], terms), terms, distinct=True)


def test_places_beyond_two_gibibytes(monkeypatch):
    sentences = ["She is happy", "a black man, scared to death", "ma\u2019am, he feels joy", "the end"]
    first, across, *last = [f"\n{sentence}.\n".encode() for sentence in sentences]
    beyond, far = 1 << 31, (1 << 31) + (1 << 16)
    # Pages of zeros that nobody writes to take no memory; the scanner's own buffer would copy them.
    data = np.zeros(far + len(b"".join(last)) + PADDING, dtype=np.uint8)
    for place, part in ((0, first), (beyond - 9, across), (far, b"".join(last))):
        data[place : place + len(part)] = np.frombuffer(part, dtype=np.uint8)
    empty = np.zeros(PADDING, dtype=np.uint8)
    monkeypatch.setattr(Scanner, "_fill_buffer", lambda _, read: read if len(read) else empty)
    for kind, terms in LISTS.items():
        scanner = Scanner(BUILT[kind], CountingConfig(is_distinct=True, samples=9))
        scanner.feed(data)
        expected = count([b"".join((first, across, *last)).decode()], terms)
        check(scanner.finish(), expected, terms, distinct=True)
        assert {(sample.place, sample.text) for sample in scanner.samples()} == {
            (place + 1, f"{sentence}.")
            for place, sentence in zip((0, beyond - 9, far), sentences, strict=False)
        }


@pytest.mark.parametrize(
    ("axes", "groups", "dense"), [(4, 4, True), (1, 17, True), (1, 61, True), (1, 62, False), (3, 21, False)]
)
def test_any_number_of_groups(axes, groups, dense):
    # Two emotions and 16, 17, 61, 62 and 63 groups: around the limit of 63 categories.
    terms = wide(axes, groups)
    built = build_vocabulary(terms, "words")
    assert is_dense(built.sizes) == dense
    text = ". ".join(
        f"{one} {two} {three}" for one, two, three in zip(WORDS, WORDS[3:], WORDS[7:], strict=False)
    )
    check(
        scan_bytes([text.encode()], built, CountingConfig(is_distinct=True)),
        count([text], terms),
        terms,
        distinct=True,
    )


def test_a_sentence_by_hand():
    # Two sentences: joy with two female terms (and one male), then fear without a group.
    counts = scan_bytes([b"She told her father: joy! Fear"], BUILT["dense"], CountingConfig(is_distinct=True))
    assert (counts.units, counts.words, counts.with_group) == (2, 6, 1)
    found = totals(counts, SMALL)
    assert found.emotions.tolist() == [1, 1]
    assert found.flags.tolist() == [[1, 1, 0, 1], [0, 0, 0, 0]]
    assert found.distinct.tolist() == [[2, 1, 0, 1], [0, 0, 0, 0]]
    assert found.axes.tolist() == [1, 0, 1]


def test_counts_add_up():
    one = scan_bytes([b"she is happy"], BUILT["dense"], CountingConfig())
    two = scan_bytes([b"he is happy"], BUILT["dense"], CountingConfig())
    both = scan_bytes([b"she is happy\n\nhe is happy"], BUILT["dense"], CountingConfig())
    assert [a + b for a, b in zip(one[:4], two[:4], strict=True)] == [2, 6, 2, 2] == list(both[:4])
    assert np.array_equal(one.blocks + two.blocks, both.blocks)


def test_bad_bytes_are_counted_and_placed():
    scanner = Scanner(BUILT["dense"], CountingConfig())
    scanner.feed(b"caf\xe9 happy\n\xff she")
    counts = scanner.finish()
    assert (scanner.bad_bytes, scanner.first_bad_byte) == (2, 3)
    assert totals(counts, SMALL).emotions.tolist() == [1, 0]


def test_samples_do_not_depend_on_the_pieces():
    lines = [f"line {number}: she is happy" for number in range(100, 600)] + ["alone with joy", "fear and he"]
    data = "\n".join(lines).encode()
    found = []
    for kind, size in [("dense", 0), ("dense", 100), ("sparse", 333)]:
        scanner = Scanner(BUILT[kind], CountingConfig(samples=3), key=7)
        for piece in pieces(data, size):
            scanner.feed(piece)
        scanner.finish()
        found.append({sample.text for sample in scanner.samples()})
        if kind == "dense":
            cells = {sample.cell for sample in scanner.samples()}
            assert cells == {0, 4, 5 + 1}  # joy x female, joy without a group, fear x male
    assert found[0] == found[1]
    assert len(found[0]) == 5
    assert {"alone with joy", "fear and he"} <= found[0]
