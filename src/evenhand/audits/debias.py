"""``debias``: text written with a mitigation on, from prompts of yours or from a suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Unpack, cast

from evenhand.audits.audit import AuditJob
from evenhand.audits.audit import prepare as prepare_audit
from evenhand.audits.options import DebiasOptions, MitigationOptions, TradeoffOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, describe_split_words
from evenhand.config import resolve_config
from evenhand.core import registry
from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of
from evenhand.core.protocols import Model, Progress, ResolvesSpec
from evenhand.core.records import GenerationSpec, Request
from evenhand.core.registry import Option
from evenhand.run_options import AuditOptions
from evenhand.store.run import Run

MODES: Final[Mapping[str, str]] = {
    "embedding": "calibration:embedding",
    "classifier": "calibration:classifier",
    "naive": "replacement:naive",
    "in-glove": "replacement:in-glove",
}
"""Mode to the mitigation behind it."""


_OF_SUITES: Final = ("metrics", "limit", "out", "fresh")
_OF_PROMPTS: Final = ("vanilla",)
"""Options that mean nothing for the other kind of texts."""


class WrittenText(NamedTuple):
    """A continuation with the mitigation on, and the model's own of the same random numbers."""

    prompt: str
    sample: int
    text: str | None
    vanilla: str | None
    """None without ``vanilla``, or where it failed."""
    failure: str | None


@dataclass(frozen=True, slots=True)
class DebiasResult:
    """What was written."""

    texts: tuple[WrittenText, ...]
    """The continuations of the given prompts; empty for a suite."""
    run: Run | None
    """The run of a suite: texts, scores, comparisons, report."""


@dataclass(frozen=True, slots=True)
class DebiasJob:
    """A writing that is ready to start: everything is loaded and checked."""

    mode: str
    plain_model: Model
    mitigated_model: Model
    prompts: tuple[str, ...]
    spec: GenerationSpec
    vanilla: bool
    audit: AuditJob | None

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        if self.audit is not None:
            return self.audit.plan()
        texts = len(self.prompts) * self.spec.samples * (2 if self.vanilla else 1)
        mode = f"mode    {self.mode}: {MODES[self.mode]}"
        amount = f"texts   {texts:,}, at most {texts * self.spec.max_new_tokens:,} tokens"
        lines = (mode, amount, *describe_split_words(self.mitigated_model.ref))
        return RunPlan(f"debias {self.plain_model.ref.name}", lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> DebiasResult:
        """Write."""
        if self.audit is not None:
            return DebiasResult((), self.audit.run(progress))
        requests = [
            Request(digest([prompt]), prompt, tuple(range(self.spec.samples))) for prompt in self.prompts
        ]
        models = [self.mitigated_model, *([self.plain_model] if self.vanilla else [])]
        written, *own = (
            {(done.request_id, done.sample): done for done in model.generate(requests, self.spec)}
            for model in models
        )
        texts = []
        for item in requests:
            for sample in item.samples:
                text, vanilla = written[item.id, sample], own[0][item.id, sample].text if own else None
                texts.append(WrittenText(item.text, sample, text.text, vanilla, text.failure))
        return DebiasResult(tuple(texts), None)


@checks_options
def debias(
    model: str | Model = "builtin", *, progress: Progress = SILENT_PROGRESS, **options: Unpack[DebiasOptions]
) -> DebiasResult:
    """What a model writes with a mitigation on; arguments are those of ``evenhand debias``.

    With ``prompt`` the continuations come back; with ``suite`` the run of an audit of that suite.
    """
    return prepare(model, **options).run(progress)


@checks_options
def prepare(model: str | Model = "builtin", **options: Unpack[DebiasOptions]) -> DebiasJob:
    """A writing with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    mode, prompts, suite = options["mode"], options["prompt"] or (), options["suite"]
    prompts = (prompts,) if isinstance(prompts, str) else tuple(prompts)
    check_mode(mode)
    if bool(prompts) == (suite is not None):
        raise InputError(
            "both a prompt and a suite were given" if prompts else "neither a prompt nor a suite was given",
            expected="one of the two",
            fix='for example --prompt "About voting, people from Texas will", or --suite political',
        )
    names, kind, other = (_OF_SUITES, "prompts", "suite") if prompts else (_OF_PROMPTS, "suites", "prompt")
    given: Mapping[str, object] = options
    if unused := [name for name in names if given[name] not in (None, False)]:
        flags = {name: fields_of(DebiasOptions)[name].flag for name in names}
        raise InputError(
            f"{', '.join(flags[name] for name in unused)}, and the texts are of {kind}",
            expected=f"{', '.join(flags.values())} only for {other}s",
            fix=f"leave it out, or give --{other}",
        )
    audited = fields_of(AuditOptions).keys() - {"suite"}
    shared = cast(AuditOptions, {name: value for name, value in options.items() if name in audited})
    settings = resolve_config(shared, model={"name": model if isinstance(model, str) else None})
    plain = (
        registry.create_model(settings.model, settings.model_options, settings.execution())
        if isinstance(model, str)
        else model
    )
    steering = mitigation_options(options)
    if suite is not None:
        shared["suite"], shared["mitigate"], shared["mitigation_options"] = suite, MODES[mode], steering
        audit = prepare_audit(plain, **shared)
        return DebiasJob(mode, plain, audit.model, (), GenerationSpec(), vanilla=False, audit=audit)
    spec = settings.sampling(GenerationSpec(samples=1, max_new_tokens=60))
    spec = plain.resolved(spec) if isinstance(plain, ResolvesSpec) else spec
    mitigated = registry.create_mitigation(MODES[mode], steering).apply(plain)
    return DebiasJob(mode, plain, mitigated, prompts, spec, options["vanilla"], None)


def mitigation_options(given: DebiasOptions | TradeoffOptions) -> dict[str, Option]:
    """What a mitigation is created with: the options with a keyword of their own, then ``options``."""
    named = fields_of(MitigationOptions).keys() - {"mode", "options"}
    own = {name: value for name, value in given.items() if name in named and value is not None}
    return {**cast("dict[str, Option]", own), **(given["options"] or {})}


def check_mode(mode: str) -> None:
    """An error for a mode that there is not."""
    if mode not in MODES:
        raise InputError(f"there is no mode {mode!r}", expected=", ".join(MODES), fix="name one of these")
