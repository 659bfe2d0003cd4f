"""Texts that people wrote for a suite's prompts, given back as if a model had written them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import HumanSuite, Suite
from evenhand.core.records import Completion, Execution, GenerationSpec, ModelRef, Request

NAME: Final = "wikipedia"
"""What ``--model`` calls the human texts of the run's own suite."""


class HumanModel:
    """The human baseline of a suite: for each prompt the text a person wrote, without the prompt.

    There is one text a prompt: a second sample fails with ``no_human_text``, as does a prompt without one.

    Args:
        suite: A suite that brings human texts, such as BOLD with its Wikipedia sentences.
    """

    def __init__(self, suite: HumanSuite) -> None:
        self._texts = suite.human_texts()
        self.ref = ModelRef("human", suite.human_name, suite.info.digest)

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """The stored text of each request."""
        for request in requests:
            text = self._texts.get(request.id)
            for sample in request.samples:
                if text is None or sample:
                    yield Completion(request.id, sample, None, None, failure="no_human_text")
                else:
                    yield Completion(request.id, sample, text.removeprefix(request.text), "replayed")

    def pace(self, spec: GenerationSpec) -> float:
        """Without end: nothing is written."""
        return math.inf


def load(name: str = "", *, suite: str = "", execution: Execution | None = None) -> HumanModel:
    """The human texts of a suite: Wikipedia's sentences for BOLD.

    Args:
        name: The suite as ``--suite`` names it, or the folder of BOLD: ``wikipedia:FOLDER``.
        suite: The suite of the run, where no other is named: ``audit wikipedia --suite bold:FOLDER``.
        execution: Whether the run is offline.
    """
    spec = name or suite or "bold"
    if spec.partition(":")[0] not in {entry.name for entry in registry.available("suites")}:
        spec = f"bold:{spec}"
    return of_suite(registry.suite(spec, execution=execution))


def of_suite(suite: Suite) -> HumanModel:
    """The human texts of a suite that is loaded; an error where it has none."""
    if not isinstance(suite, HumanSuite):
        raise InputError(
            f"the suite {suite.info.name!r} has no texts written by people",
            accepted="one suite that has: bold, bold-subset, bold-table-3",
            todo="for example `evenhand audit wikipedia --suite bold:FOLDER`",
        )
    return HumanModel(suite)
