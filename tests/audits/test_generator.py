"""Shards that are written together, and finished apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from evenhand.audits.generator import STAGE, PromptShard, SampleTier, TextGenerator, plan_shards
from evenhand.core.errors import ModelError
from evenhand.core.protocols import MaxBatch, SilentProgress
from evenhand.core.records import Completion, GenerationSpec, Prompt, Request
from evenhand.store.cache import ContentCache
from evenhand.store.run_folder import RunFolder
from evenhand.testing.stub import StubModel

SPEC = GenerationSpec()
PROMPTS = [Prompt(f"p{number}", "suite", f"Prompt {number} says", (), f"c{number}") for number in range(200)]
SHARDS = plan_shards(len(PROMPTS), [SampleTier(None, 1)])
"""64, 64, 64 and 8 prompts."""


class WideStub(StubModel):
    """A stub that writes 100 texts side by side, and notes what it was asked for."""

    at_once = 100

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        self.asked.append([request.id for request in requests])
        return super().generate(requests, spec)


def run(
    path: Path, model: StubModel, shards: Sequence[PromptShard] = SHARDS, prompts: Sequence[Prompt] = PROMPTS
) -> pl.DataFrame:
    cache = ContentCache(path.parent / f"cache of {path.name}")
    with closing(cache), RunFolder(path, identity={"model": "m"}) as folder:
        keys = TextGenerator(model, SPEC, folder, cache).run(prompts, shards, SilentProgress())
        return folder.read_shards(STAGE, keys).collect()


def test_shards_that_a_model_has_room_for_are_written_together(tmp_path: Path) -> None:
    wide = WideStub()
    assert isinstance(wide, MaxBatch)
    found = run(tmp_path / "wide", wide)
    # Two of 64 have 100 or more; the third and the last have fewer, but nothing follows them.
    assert [len(asked) for asked in wide.asked] == [128, 72]
    assert found.equals(run(tmp_path / "plain", StubModel()))


def test_a_group_that_was_stopped_is_asked_for_as_a_whole(tmp_path: Path) -> None:
    wide = WideStub()
    clean = run(tmp_path / "clean", WideStub())
    run(tmp_path / "run", StubModel(), SHARDS[:1])
    again = run(tmp_path / "run", wide)
    # So that every text has the same ones beside it as in a run that was never stopped.
    assert [len(asked) for asked in wide.asked] == [128, 72]
    assert again.equals(clean)
    run(tmp_path / "run", wide)
    assert len(wide.asked) == 2


def test_what_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    class Talking(WideStub):
        def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
            yield from super().generate(requests, spec)
            yield Completion("unknown", 0, "text", "stop")

    with pytest.raises(ModelError, match="not asked"):
        run(tmp_path / "run", Talking())


def test_a_text_that_comes_twice_is_refused(tmp_path: Path) -> None:
    class Twice(WideStub):
        def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
            for completion in super().generate(requests, spec):
                yield completion
                if completion.request_id == "p70":
                    yield completion

    with pytest.raises(ModelError, match="answered already"):
        run(tmp_path / "run", Twice())


def test_a_model_that_works_elsewhere_is_given_groups_too(tmp_path: Path) -> None:
    class Elsewhere(WideStub):
        def generate_each(
            self, shards: Iterable[Sequence[Request]], spec: GenerationSpec
        ) -> Iterator[tuple[int, Sequence[Completion]]]:
            """The last one is done first."""
            for place, requests in reversed(list(enumerate(shards))):
                yield place, list(self.generate(requests, spec))

    elsewhere = Elsewhere()
    found = run(tmp_path / "elsewhere", elsewhere)
    assert [len(asked) for asked in elsewhere.asked] == [72, 128]
    assert found.equals(run(tmp_path / "plain", StubModel()))


def test_what_was_asked_for_later_is_not_written_with_what_is_finished(tmp_path: Path) -> None:
    wide = WideStub()
    run(tmp_path / "run", wide, plan_shards(len(PROMPTS), [SampleTier(70, 1)]))
    run(tmp_path / "run", wide, plan_shards(len(PROMPTS), [SampleTier(70, 1), SampleTier(None, 1)]))
    # 64 and 6; then 64 and 64, and the 2 that are left.
    assert [len(asked) for asked in wide.asked] == [70, 128, 2]


def test_an_id_that_is_there_twice_is_written_twice(tmp_path: Path) -> None:
    twice = [*PROMPTS[:100], *PROMPTS[:100]]
    found = run(tmp_path / "wide", WideStub(), prompts=twice)
    assert found.height == 200
    assert found["failure"].null_count() == 200
    assert found.equals(run(tmp_path / "plain", StubModel(), prompts=twice))
