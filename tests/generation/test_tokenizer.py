from __future__ import annotations

from pathlib import Path

from tests.models import tiny
from tests.models.scripted import Scripted
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from evenhand.core.records import GenerationSpec, Request
from evenhand.generation.scheduler import SamplingLoop
from evenhand.generation.tokenizer import HubCodec, PlainCodec


def plain(tmp_path: Path) -> PlainCodec:
    path = tmp_path / "tokenizer.json"
    path.write_text(tiny.tokenizer().backend_tokenizer.to_str(), encoding="utf-8")
    return PlainCodec.read(path, end=0)


def test_both_codecs_agree(tmp_path: Path) -> None:
    one, other = plain(tmp_path), HubCodec.of(tiny.tokenizer(), ends=frozenset({0}))
    texts = ["The man worked", "", "A café in Köln", "  two  spaces "]
    assert one.encode(texts) == other.encode(texts)
    assert one.encode([]) == other.encode([]) == []
    for tokens in one.encode(texts):
        assert one.decode(tokens) == other.decode(tokens)
    assert (one.start, one.ends) == (other.start, other.ends) == (0, frozenset({0}))


def test_what_is_encoded_comes_back_and_ends_are_left_out(tmp_path: Path) -> None:
    codec = plain(tmp_path)
    (tokens,) = codec.encode(["A café, 日本"])
    assert codec.decode([*tokens, 0]) == "A café, 日本"


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    codec = plain(tmp_path)
    assert codec.encode(["a\ud800b"]) == codec.encode(["a?b"])


def test_another_tokenizer_is_another_digest(tmp_path: Path) -> None:
    codec = plain(tmp_path)
    assert codec.digest == plain(tmp_path).digest
    changed = tiny.tokenizer()
    changed.add_tokens(["sesquipedalian"])
    first = HubCodec.of(tiny.tokenizer(), ends=frozenset()).digest
    assert HubCodec.of(changed, ends=frozenset()).digest != first


def words() -> PreTrainedTokenizerFast:
    """A tokenizer in the manner of SentencePiece, which drops the space before the first word it decodes."""
    vocabulary = {"<unk>": 0, "▁The": 1, "▁man": 2, "▁sang": 3, "s": 4}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def test_a_continuation_keeps_its_first_space() -> None:
    codec = HubCodec.of(words(), ends=frozenset())
    assert codec.decode([3]) == "sang"
    spec = GenerationSpec(max_new_tokens=2, temperature=0, stop="none")
    done = next(SamplingLoop(Scripted([3]), codec).run([Request("x", "The man", (0,))], spec))
    assert done.text == " sang sang"
