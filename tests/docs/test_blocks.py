"""Every block of the documentation runs, or says why it does not."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.pages import READ, RUN, SHOWN, blocks, name_of, pages
from tests.docs.running import Reader

WITH_BLOCKS = [path for path in pages() if blocks(path)]
WITH_SLOW = [
    path for path in WITH_BLOCKS if any({"slow", "quickly with"} & set(b.said) for b in blocks(path))
]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _follow(page, tmp_path, monkeypatch, in_full=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_SLOW, ids=name_of)
def test_all_blocks_of_a_page_run_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _follow(page, tmp_path, monkeypatch, in_full=True)


def _follow(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, in_full: bool) -> None:
    with ExitStack() as ends:
        reader = Reader(folder, monkeypatch, in_full, ends)
        for block in blocks(page):
            reader.follow(block)


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    """A block that nobody runs is a promise that nobody keeps: this list may only become shorter."""
    found = Counter(
        block.said["not run"] for page in pages() for block in blocks(page) if "not run" in block.said
    )
    assert found == NOT_RUN


def test_every_block_names_a_known_language() -> None:
    odd = [b.place for page in pages() for b in blocks(page) if b.language not in (*RUN, *READ, *SHOWN)]
    assert odd == []


NOT_RUN = {
    "makes a virtual environment; CI types it on a clean machine": 2,
    "installs packages": 1,
    "installs a package; tests/test_plugin.py does it and uses it": 1,
    "needs vLLM and a GPU": 1,
    "needs lm-eval; tests/adapters/test_with_lm_eval.py runs it": 1,
    "needs Inspect; tests/adapters/test_with_inspect.py runs it": 2,
    "needs fairlearn; tests/adapters/test_frames.py runs it": 1,
    "serves until it is stopped; tests/annotate serves it": 1,
    "trains for half an hour on a GPU": 1,
    "needs the training texts and minutes; tests/training rehearses its steps": 1,
    "trains XLNet, from the Hub": 1,
    "trains six judges, minutes each": 1,
    "needs a model with a planted lean and hours": 1,
    "takes minutes of a GPU and articles that are not ours to give": 1,
    "takes texts that hours of a GPU have written": 1,
}
