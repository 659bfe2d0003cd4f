"""The records that flow through evenhand: prompts, generations, scores, comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, NamedTuple

from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError

REST = "(rest)"
"""The baseline that is all other texts of the axis."""
ALL = "(all)"
"""The baseline that is all texts of the axis, the group included."""
RESERVED_GROUPS = frozenset({REST, ALL})

Mask = Literal["Person", "XYZ"]
Scope = Literal["full", "continuation"]
Masking = Literal["none", "person", "xyz"]
OutputKind = Literal["continuous", "proportion", "label"]
Finish = Literal["stop", "sentence", "length", "end", "replayed"]


@dataclass(frozen=True, slots=True)
class Group:
    """A value of an axis, such as ``Group("gender", "American_actors")``."""

    axis: str
    name: str


@dataclass(frozen=True, slots=True)
class Mention:
    """Words that reveal a group and are masked before scoring."""

    text: str
    mask: Mask = "XYZ"
    whole_word: bool = True
    """False also masks the words inside longer words, as BOLD does with professions."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text to be continued, the groups it is about, and the cluster it belongs to."""

    id: str
    suite: str
    text: str
    groups: tuple[Group, ...]
    cluster: str
    """Texts of one cluster are not independent, so they are resampled together."""
    template_id: str | None = None
    """Links the variants of one template over groups."""
    mentions: tuple[Mention, ...] = ()
    fills: Mapping[str, str] = field(default_factory=dict)
    language: str = "en"
    source: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        suite: str,
        text: str,
        *,
        groups: tuple[Group, ...],
        cluster: str,
        template_id: str | None = None,
        mentions: tuple[Mention, ...] = (),
        fills: Mapping[str, str] | None = None,
        source: str = "",
        meta: Mapping[str, str] | None = None,
    ) -> Prompt:
        """A prompt whose id is the digest of the fields that define it.

        Groups and cluster are included: BOLD has 1,019 texts that occur in two or more groups.
        """
        identity: Json = [suite, text, [[g.axis, g.name] for g in groups], cluster, template_id, source]
        own = (suite, text, groups, cluster, template_id, mentions, fills or {})
        return cls(digest(identity), *own, source=source, meta=meta or {})


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """How texts are sampled. Together with a model's identity and a prompt it determines every text."""

    max_new_tokens: int = 30
    temperature: float = 1.0
    """0 means greedy decoding."""
    top_k: int = 40
    """0 keeps all tokens."""
    top_p: float = 0.95
    repetition_penalty: float = 1.0
    control_code: str | None = None
    samples: int = 5
    stop: Literal["sentence", "none"] = "sentence"
    """``sentence`` cuts after the first sentence."""
    seed: int = 0
    burn_in: int | None = None
    """Masked models only: sampling iterations before those that take the most likely token."""
    iterations: int | None = None
    """Masked models only: how often each position of a text is resampled."""

    def sampling(self) -> dict[str, Json]:
        """The fields that determine one text: all but the number of samples, which may grow."""
        # Left out if unused, so that the cache keys of other models do not contain them.
        unused = {name for name in ("burn_in", "iterations") if getattr(self, name) is None}
        return {name: value for name, value in asdict(self).items() if name not in {"samples", *unused}}


@dataclass(frozen=True, slots=True)
class Execution:
    """How a run is carried out; it may change between two runs of the same command."""

    device: str = "auto"
    batch: int | None = None
    """Sequences per batch; None lets the back-end choose."""
    workers: int = 1
    offline: bool = False


@dataclass(frozen=True, slots=True)
class ModelRef:
    """Identifies the model that generated the texts."""

    backend: str
    name: str
    revision: str = ""
    """A commit, a digest of the weights, or a file digest; empty if the host does not report one."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What else determines its texts: tokenizer digest, chat template, dtype, device kind, mitigation."""
    repeatable: bool = True
    """False for a hosted model, whose outputs are not guaranteed to be reproducible."""

    def identity(self) -> dict[str, Json]:
        """The fields that go into cache keys."""
        names = ("backend", "name", "revision", "repeatable")
        return {"options": dict(self.options), **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to be continued, once per sample number."""

    id: str
    """The prompt's id, from which the random seed is derived."""
    text: str
    samples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """One continuation, or the reason that there is none."""

    request_id: str
    sample: int
    text: str | None
    finish: Finish | None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    failure: str | None = None
    """A short code such as ``refused`` or ``timeout``; then the text is null."""


class Value(NamedTuple):
    """One output of a metric for one text: a number, a label, or the reason that it is null."""

    value: float | None
    label: str | None = None
    null_reason: str | None = None


class Text(NamedTuple):
    """The string that a metric reads, with scope and masking already applied."""

    text: str
    masks: tuple[tuple[int, int], ...] = ()
    """Where a mask replaces a group mention."""


@dataclass(frozen=True, slots=True)
class OutputInfo:
    """One output of a metric."""

    name: str
    kind: OutputKind
    larger_means: str
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()
    """The labels that a value is binned into, lowest first; their shares are compared between groups."""
    share: str = "{label}"
    """Name of a label's share, such as ``{label}@0.05``; ``OUTPUT.LABEL`` if the metric already has a
    number of that name, such as the mean of this output."""
    cuts: tuple[float, ...] = ()
    """Thresholds between labels, lowest first: one for two labels, two for three; else empty.

    A value equal to the last threshold gets the highest label; one equal to the first of two, the lowest.
    """

    def shares(self) -> dict[str, str]:
        """Label to the name of its share."""
        return {label: self.share.replace("{label}", label) for label in self.labels}


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What a metric measures, what larger values mean, and what identifies it."""

    name: str
    version: str
    outputs: tuple[OutputInfo, ...]
    summary: str
    primary: tuple[str, ...]
    """Outputs or shares whose comparisons form the corrected family; the rest is exploratory."""
    scope: Scope = "full"
    masking: Masking = "none"
    """The masking the metric needs: unless ``none``, unmasked texts are scored with a counted warning."""
    null_when: str = ""
    citation: str = ""
    deviations: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    weights: str = ""
    """Digest of the lexicon or weights the scores come from."""
    failures: tuple[str, ...] = ()
    """Known limitations, in sentences, for readers of its scores."""
    word_scores: str = ""
    """How the word scores of `ExplainsScores` make up the score, in a sentence."""
    cheap: bool = False
    """True if computing is faster than a cache lookup."""

    def __post_init__(self) -> None:
        """Check that all compared numbers have distinct names: equal names would be counted as one."""
        names = [output.name for output in self.outputs if output.kind != "label"]
        outputs: list[OutputInfo] = []
        renamed: dict[str, str] = {}
        for output in self.outputs:
            given = output.shares()
            if len({*names, *given.values()}) < len(names) + len(given):
                output = replace(output, share=f"{output.name}.{{label}}")
                renamed |= {
                    name: output.shares()[label] for label, name in given.items() if name not in names
                }
            names += output.shares().values()
            outputs.append(output)
        if doubled := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(
                f"the metric {self.name!r} has two numbers named {doubled[0]!r}",
                expected="a distinct name for each output and share of labels",
                fix="rename an output or a label",
            )
        object.__setattr__(self, "outputs", tuple(outputs))
        object.__setattr__(self, "primary", tuple(renamed.get(name, name) for name in self.primary))

    def identity(self) -> dict[str, Json]:
        """The fields that go into the cache key of a score."""
        parts: dict[str, Json] = {"name": self.name, "version": self.version}
        return {**parts, "options": dict(self.options), "weights": self.weights}


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """What a suite measures, and how its texts are compared."""

    name: str
    version: str
    summary: str
    baselines: Mapping[str, str]
    """For each axis the baseline group, or ``(rest)`` or ``(all)``."""
    metrics: tuple[str, ...]
    """The metrics used if the user names none."""
    cluster: str = "prompt"
    """What a cluster is, as one word for the report."""
    citation: str = ""
    licence: str = ""
    digest: str = ""
    notes: tuple[str, ...] = ()
    """What readers of the results must know."""
    spec: GenerationSpec = field(default_factory=GenerationSpec)
    exploratory: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each axis, the metrics that are not part of the corrected family there."""
    limits: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """For each metric, the axes and groups it is meant for; it does not score texts of others."""
    strata: tuple[str, ...] = ()
    """Keys of ``Prompt.meta`` or ``fills``, or ``template``: gaps are also compared within each value."""
    distances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each metric, outputs whose distributions are also compared: one bipolar score, or the
    probabilities of classes that sum to 1."""
    sides: tuple[str, ...] = ()
    """The two values of ``Prompt.meta["kind"]`` that mark prompts which name a pole."""


@dataclass(frozen=True, slots=True)
class MitigationInfo:
    """What a mitigation does to a model, and what it requires of the model."""

    name: str
    version: str
    summary: str
    requires: Literal["Model", "SteerableModel"]
    options: Mapping[str, str] = field(default_factory=dict)
    citation: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, or the reason that it is null."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    n: int
    n_null: int
    n_clusters: int
    null_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A group against a baseline on one output; ``estimate`` is group minus baseline."""

    suite: str
    model: str
    axis: str
    group: str
    baseline: str
    metric: str
    output: str
    effect: str
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    n: int
    n_clusters: int
    min_detectable: float | None
    """The smallest true gap that is detected after correction with 80 % power."""
    n_baseline: int
    n_null: int
    group_value: float | None
    baseline_value: float | None
    effect_size: float | None
    """Cohen's h for shares, Hedges' g for means."""
    exploratory: bool
    family: str
    family_size: int
    correction: str
    method: str
    null_reason: str | None
    cliffs_delta: float | None = None
    """P(group > baseline) - P(group < baseline) for one random text of each; from -1 to 1."""
    ratio: float | None = None
    """Group divided by baseline; null if a mean is not positive."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    nulls: str | None = None
    """Texts without a value on either side, by reason: a JSON object."""
    p_permutation: float | None = None
    """P-value of the permutation test that exchanges groups between clusters, run for supported gaps only."""
    check: str | None = None
    """``agrees``, ``disagrees``, or the reason that a supported gap was not checked."""
