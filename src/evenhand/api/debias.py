"""``debias``: text written with a mitigation on, from prompts of yours or from a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Unpack, cast

from evenhand.api.audit import Audit
from evenhand.api.audit import prepare as prepare_audit
from evenhand.api.mitigation_options import DebiasOptions, MitigationOptions, TradeoffOptions
from evenhand.api.parts import SILENT, Plan, split_line
from evenhand.api.run_options import AuditOptions
from evenhand.api.settings import resolve
from evenhand.core import registry
from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of
from evenhand.core.protocols import Model, Progress, ResolvesSpec
from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.core.registry import Option
from evenhand.store.run import Run

MODES: Final[Mapping[str, str]] = {
    "embedding": "calibration:embedding",
    "classifier": "calibration:classifier",
    "naive": "replacement:naive",
    "in-glove": "replacement:in-glove",
}
"""Mode to the mitigation behind it."""


class WrittenText(NamedTuple):
    """A continuation with the mitigation on, and the model's own of the same random numbers."""

    prompt: str
    sample: int
    text: str | None
    vanilla: str | None
    """None where it was not asked for, or failed."""
    failure: str | None


@dataclass(frozen=True, slots=True)
class Debiased:
    """What was written."""

    texts: tuple[WrittenText, ...]
    """The continuations of the given prompts; empty for a suite."""
    run: Run | None
    """The run of a suite: texts, scores, comparisons, report."""


@dataclass(frozen=True, slots=True)
class Debias:
    """A writing that is ready to start: everything is loaded and checked."""

    mode: str
    plain: Model
    mitigated: Model
    prompts: tuple[str, ...]
    spec: GenerationSpec
    vanilla: bool
    audit: Audit | None

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        if self.audit is not None:
            return self.audit.plan()
        texts = len(self.prompts) * self.spec.samples * (2 if self.vanilla else 1)
        return Plan(
            f"debias {self.plain.ref.name}",
            (
                f"mode    {self.mode}: {MODES[self.mode]}",
                f"texts   {texts:,}, at most {texts * self.spec.max_new_tokens:,} tokens",
                *split_line(self.mitigated.ref),
            ),
            Path(),
        )

    def run(self, progress: Progress = SILENT) -> Debiased:
        """Write."""
        if self.audit is not None:
            return Debiased((), self.audit.run(progress))
        requests = [
            Request(digest([prompt]), prompt, tuple(range(self.spec.samples))) for prompt in self.prompts
        ]
        found = _completed(self.mitigated, requests, self.spec)
        own = _completed(self.plain, requests, self.spec) if self.vanilla else {}
        texts = [
            _joined(item.text, sample, found[item.id, sample], own.get((item.id, sample)))
            for item in requests
            for sample in item.samples
        ]
        return Debiased(tuple(texts), None)


@checks_options
def debias(
    model: str | Model = "builtin", *, progress: Progress = SILENT, **options: Unpack[DebiasOptions]
) -> Debiased:
    """What a model writes with a mitigation on; arguments are those of ``evenhand debias``.

    With ``prompt`` the continuations come back; with ``suite`` the run of an audit of that suite.
    """
    return prepare(model, **options).run(progress)


@checks_options
def prepare(model: str | Model = "builtin", **options: Unpack[DebiasOptions]) -> Debias:
    """A writing with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    mode, prompts, suite = options["mode"], _prompts(options["prompt"]), options["suite"]
    _check(mode, prompts, suite)
    shared = _shared(options)
    settings = resolve(shared, model={"name": model if isinstance(model, str) else None})
    plain = (
        registry.model(settings.model, settings.model_options, settings.execution())
        if isinstance(model, str)
        else model
    )
    given = mitigation_options(options)
    if suite is not None:
        shared["suite"], shared["mitigate"], shared["mitigation_options"] = suite, MODES[mode], given
        audit = prepare_audit(plain, **shared)
        return Debias(mode, plain, audit.model, (), GenerationSpec(), vanilla=False, audit=audit)
    spec = settings.sampling(GenerationSpec(samples=1, max_new_tokens=60))
    spec = plain.resolved(spec) if isinstance(plain, ResolvesSpec) else spec
    mitigated = registry.mitigation(MODES[mode], given).apply(plain)
    return Debias(mode, plain, mitigated, prompts, spec, options["vanilla"], None)


def mitigation_options(given: DebiasOptions | TradeoffOptions) -> dict[str, Option]:
    """What a mitigation is created with: the options with a keyword of their own, then ``options``."""
    named = fields_of(MitigationOptions).keys() - {"mode", "options"}
    own = {name: value for name, value in given.items() if name in named and value is not None}
    return {**cast("dict[str, Option]", own), **(given["options"] or {})}


def _shared(options: DebiasOptions) -> AuditOptions:
    """What an audit takes too, the suite left out."""
    taken = fields_of(AuditOptions).keys() - {"suite"}
    return {name: value for name, value in options.items() if name in taken}  # type: ignore[return-value]


def _prompts(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _check(mode: str, prompts: Sequence[str], suite: object) -> None:
    if mode not in MODES:
        raise InputError(f"there is no mode {mode!r}", accepted=", ".join(MODES), todo="name one of these")
    if bool(prompts) == (suite is not None):
        raise InputError(
            "both a prompt and a suite were given" if prompts else "neither a prompt nor a suite was given",
            accepted="one of the two",
            todo='for example --prompt "About voting, people from Texas will", or --suite political',
        )


def _completed(
    model: Model, requests: Sequence[Request], spec: GenerationSpec
) -> dict[tuple[str, int], Completion]:
    return {(item.request_id, item.sample): item for item in model.generate(requests, spec)}


def _joined(prompt: str, sample: int, found: Completion, own: Completion | None) -> WrittenText:
    return WrittenText(prompt, sample, found.text, own.text if own else None, found.failure)
