import json

import pytest

from evenhand.core.errors import InputError
from evenhand.corpus.term_lists import builtin_terms, find_unmatchable, load_terms, split_term
from evenhand.corpus.tokenisation import fold_letter, is_word_letter, letter_tables, split_words


def test_our_own_lists():
    terms = builtin_terms()
    emotions, groups = terms.size
    assert list(terms.emotions) == ["anger", "fear", "joy", "sadness"]
    assert emotions >= 700
    assert groups >= 1000
    assert terms.axes == ("gender", "race", "religion")
    assert [group.name for group in terms.groups] == [
        "male",
        "female",
        "non-binary",
        "African American",
        "European American",
        "Asian American",
        "Hispanic and Latino American",
        "Christian",
        "Muslim",
        "Jewish",
        "Buddhist",
        "Hindu",
        "Atheist",
    ]
    assert terms.problems == ()
    assert find_unmatchable(terms, "words") == []
    assert any(len(split_term(term, "words")) > 1 for group in terms.groups for term in group.terms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("King's", ["king", "s"]),
        ("ma\u2019am", ["ma", "am"]),
        ("well-read", ["well", "read"]),
        ("#Sad2day", ["sad2day"]),
        ("snake_case", ["snake_case"]),
        ("ÉLÈVE Straße", ["élève", "straße"]),
        ("\u212aelvin", ["kelvin"]),
        ("हिन्दी", ["हिन्दी"]),
        ("\u2764\ufe0fhappy \u0031\ufe0f\u20e3\ufe0f", ["happy", "1"]),
        ("...", []),
    ],
)
def test_words(text, expected):
    assert split_words(text) == expected


def test_the_letter_tables_are_the_rule():
    is_word, folded = letter_tables()
    for code in range(0, 0x110000, 7):
        letter = chr(code)
        assert is_word[code] == is_word_letter(letter)
        if is_word_letter(letter):
            assert chr(folded[code]) == fold_letter(letter)


def test_every_way_to_write_a_list(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"joy": ["happy"], "male": ["he"], "nurses": ["nurse"]}))
    (tmp_path / "b.toml").write_text('[emotions]\nfear = ["afraid"]\n[groups.age]\nold = ["aged"]\n')
    (tmp_path / "c.txt").write_text("# our own\nteen\nteenager # young\n")
    terms = load_terms([tmp_path / "a.json", tmp_path / "b.toml", f"age/young={tmp_path / 'c.txt'}"])
    assert terms.emotions == {"joy": ("happy",), "fear": ("afraid",)}
    assert [(group.axis, group.name, group.terms) for group in terms.groups] == [
        ("gender", "male", ("he",)),
        ("group", "nurses", ("nurse",)),
        ("age", "old", ("aged",)),
        ("age", "young", ("teen", "teenager")),
    ]


def test_faults_are_placed_and_the_rest_is_kept(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"joy": ["happy", "Happy"], "male": ["he", "boss"], "female": ["boss"], "nb": []}')
    terms = load_terms([path])
    assert [(problem.byte, problem.reason) for problem in terms.problems] == [
        (72, "the list 'nb' has no terms; it is not counted"),
        (18, "'Happy' is in 'joy' twice; it is counted once"),
        (63, "'boss' is in 'male' and in 'female'; it is counted in both"),
    ]
    assert terms.emotions == {"joy": ("happy",)}
    assert [group.name for group in terms.groups] == ["male", "female"]


def test_terms_without_a_word_and_terms_of_an_emotion_and_a_group_are_said(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(
        '{"joy": ["gay", "--", "\U0001f600"], "nb": ["gay"], "male": ["..", "?"], "female": ["she"]}'
    )
    terms = load_terms([path])
    assert [problem.reason for problem in terms.problems] == [
        "the list 'male' has no terms; it is not counted",
        "'--' in 'joy' has no letter or digit; it cannot be found",
        "'\U0001f600' in 'joy' has no letter or digit; it cannot be found",
        "'gay' is in 'joy' and in 'nb'; it is counted in both",
    ]
    assert terms.emotions == {"joy": ("gay",)}


def test_a_hash_apart_begins_a_comment(tmp_path):
    (tmp_path / "women.txt").write_text("#metoo\n# a note\nshe # the pronoun\nC#\n#\n")
    (tmp_path / "joy.txt").write_text("happy\n")
    terms = load_terms([f"female={tmp_path / 'women.txt'}", tmp_path / "joy.txt"])
    assert terms.groups[0].terms == ("#metoo", "she", "C#")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 200_000, "cannot be read"),
        ('{"joy": ["happy"], "joy": ["glad"], "male": ["he"]}', "the name 'joy' occurs twice"),
        ('{"joy": ["happy"], "(none)": ["he"]}', r"the axis 'group' has a group named '\(none\)'"),
    ],
)
def test_lists_that_would_be_read_wrongly(tmp_path, content, message):
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load_terms([path])


@pytest.mark.parametrize(
    "content", ["{}", '{"joy": ["happy"]}', '{"male": ["he"]}', "[1]", "{", '{"joy": "happy"}']
)
def test_lists_that_cannot_be_used(tmp_path, content):
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"t\.json"):
        load_terms([path])


def test_a_list_that_is_only_lengthened_may_be_of_one_kind(tmp_path):
    (tmp_path / "joy.txt").write_text("happy\n")
    assert load_terms([tmp_path / "joy.txt"], needs_both=False).emotions == {"joy": ("happy",)}
    (tmp_path / "joy.txt").write_text("\n")
    with pytest.raises(InputError, match="no emotion terms"):
        load_terms([tmp_path / "joy.txt"], needs_both=False)
