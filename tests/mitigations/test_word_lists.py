from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from evenhand.core.errors import InputError
from evenhand.core.protocols import LMHead
from evenhand.mitigations.word_lists import WordLists, read_word_lists, word_list_vectors
from evenhand.models.local import CausalModel

CODES = {" one": [0], " two": [1], " three": [2, 3], " four": [1, 2, 3]}


def anatomy(bias: torch.Tensor | None = None) -> LMHead:
    table = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [0.0, 8.0]])
    return LMHead(table, bias, lambda texts: [CODES[text] for text in texts])


def test_a_side_is_the_mean_of_its_words_and_a_word_the_mean_of_its_pieces() -> None:
    sides = WordLists(("a", "b"), (("one", "two"), ("three",)))
    found = word_list_vectors(sides, anatomy(), pieces="mean")
    # one [1, 0] and two [0, 2]: [0.5, 1]. three is [4, 4] and [0, 8]: [2, 6].
    assert found.first.tolist() == [0.5, 1.0]
    assert found.second.tolist() == [2.0, 6.0]
    assert found.split == 1
    first = word_list_vectors(sides, anatomy(), pieces="first")
    assert first.second.tolist() == [4.0, 4.0]
    assert first.split == 1
    biased = word_list_vectors(sides, anatomy(torch.tensor([1.0, 2.0, 3.0, 5.0])), pieces="mean")
    # (1 + 2) / 2 and (3 + 5) / 2.
    assert biased.offsets == (1.5, 4.0)


def test_a_word_without_any_token_is_named() -> None:
    sides = WordLists(("a", "b"), (("one",), ("two", "\u4e09")))
    silent = LMHead(torch.eye(2), None, lambda texts: [[0] if text.isascii() else [] for text in texts])
    with pytest.raises(InputError) as caught:
        word_list_vectors(sides, silent, pieces="mean")
    assert str(caught.value) == (
        "the model's tokenizer has no token for 1 of the words 'b', such as '\u4e09'. "
        "Expected: words that the tokenizer can encode. "
        "Fix: remove them, or choose words in the model's language."
    )


def test_the_collapse_gives_the_mean_distance_to_all_words(builtin: CausalModel) -> None:
    sides, body = read_word_lists("ideology"), builtin.anatomy()
    found = word_list_vectors(sides, body, pieces="first")
    hidden = next(builtin.hidden_states(["The senate voted on"], longest=9))[-1]
    logits = body.table @ hidden
    tokens = [row[0] for row in body.encode([f" {word}" for word in sides.words[0]])]
    by_words = -logits.log_softmax(-1)[tokens].mean()
    assert torch.isclose(logits.logsumexp(-1) - hidden @ found.first, by_words, atol=1e-3)


def test_embedded_lists() -> None:
    ideology, gender = read_word_lists("ideology"), read_word_lists("gender")
    assert ideology.names == ("liberal", "conservative")
    assert [len(words) for words in ideology.words] == [250, 250]
    assert gender.names == ("female", "male")
    assert ideology.digest != gender.digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"left": ["a"], "right": []},
            "the list 'right' of {path} is empty. Expected: at least one word per side. Fix: add words, "
            "or extract them from labelled texts (evenhand.training.ideology_words).",
        ),
        (
            {"left": ["a", "b"], "right": ["b"]},
            "'b' is in both lists of {path}. Expected: words of one side only. Fix: take it out.",
        ),
        (
            {"left": ["a"]},
            "{path} has 1 lists of words. Expected: two lists of words, such as "
            '{{"liberal": ["climate"], "conservative": ["border"]}}. '
            "Fix: write one list for each side.",
        ),
        (
            {"left": "a", "right": ["b"]},
            "{path} has 1 lists of words, and 1 other values. Expected: two "
            'lists of words, such as {{"liberal": ["climate"], "conservative": ["border"]}}. '
            "Fix: write one list for each side.",
        ),
    ],
)
def test_lists_that_cannot_be_used(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "words.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_word_lists(str(path))
    assert str(caught.value) == message.format(path=path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(
        InputError, match=r"^the word lists nowhere\.json cannot be read: it does not exist\."
    ):
        read_word_lists("nowhere.json")


def test_a_file_that_is_no_json_is_not_blamed_on_its_path(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text("climate, border")
    with pytest.raises(InputError, match=r"cannot be read: Expecting value.* Fix: write JSON"):
        read_word_lists(str(path))
