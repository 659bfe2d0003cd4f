"""What a suite, a model, a metric and a mitigation must be able to do. There is no base class to inherit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from evenhand.core.deprecation import resolve_former_names
from evenhand.core.records import (
    Completion,
    GenerationSpec,
    MetricInfo,
    MitigationInfo,
    ModelRef,
    Prompt,
    Request,
    SuiteInfo,
    Text,
    Value,
)

if TYPE_CHECKING:
    import torch


@runtime_checkable
class Suite(Protocol):
    """A set of prompts with their groups."""

    @property
    def info(self) -> SuiteInfo:
        """What the suite asks about."""

    def prompts(self) -> Iterator[Prompt]:
        """The prompts, always in the same order."""


@runtime_checkable
class HumanSuite(Suite, Protocol):
    """A suite that comes with texts people wrote for its prompts, to compare models with."""

    @property
    def human_name(self) -> str:
        """What these texts are called in tables, such as WIKI."""

    def human_texts(self) -> Mapping[str, str]:
        """Prompt id to the text, which begins with the prompt."""


@runtime_checkable
class Model(Protocol):
    """Text in, text out: enough for every hosted API."""

    @property
    def ref(self) -> ModelRef:
        """Which model this is."""

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they finish, in any order, one for each request and sample."""


@runtime_checkable
class ResolvesSpec(Protocol):
    """A model that knows before it writes what it can do, and what it does where a spec says nothing."""

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec with what it leaves open filled in; an error for sampling the model does not know."""


@runtime_checkable
class EstimatesThroughput(Protocol):
    """A model that can say how fast it writes before its first run."""

    def pace(self, spec: GenerationSpec) -> float:
        """Tokens a second at least, from a trial of about a second; infinite where no text is written."""


@runtime_checkable
class MaxBatch(Protocol):
    """A model that can write more texts side by side than a shard has."""

    @property
    def at_once(self) -> int:
        """How many it should be asked for together, at least."""


@runtime_checkable
class ServerInfo(Protocol):
    """A model that answers elsewhere, and says by whom."""

    @property
    def served_by(self) -> Mapping[str, str]:
        """What the host last said of itself, such as ``model`` and ``fingerprint``."""


@runtime_checkable
class ScoringModel(Model, Protocol):
    """A model that also gives log-probabilities."""

    def log_likelihoods(self, texts: Sequence[str]) -> Sequence[tuple[float, int]]:
        """For each text its natural log-probability and the number of tokens it was summed over."""


class Step(NamedTuple):
    """Where the texts of a batch stand before their next tokens."""

    hidden: torch.Tensor
    """Rows x width: the last hidden states."""
    logits: torch.Tensor
    """Rows x vocabulary: what the model itself says."""
    rows: Sequence[int]
    """Numbers of the texts, never two alike."""
    last: torch.Tensor
    """The last token of each text; that of its prompt before anything is written."""
    uniforms: torch.Tensor
    """The numbers in [0, 1) the next tokens will be drawn with."""


class Candidates(NamedTuple):
    """What may come next in each row."""

    logits: torch.Tensor
    """Rows x candidates."""
    tokens: torch.Tensor | None = None
    """The token behind each logit, rows x candidates; None where they are the whole vocabulary in order."""


class LogitsProcessor(Protocol):
    """Changes what may come next in the texts of one batch, and may remember each of them."""

    def __call__(self, step: Step) -> Candidates:
        """What may come next."""


class CapturableProcessor(Protocol):
    """A logits processor without anything of Python's in it: its memory is tensors, with a row per text."""

    def fresh(self, rows: int, device: torch.device) -> Sequence[torch.Tensor]:
        """What is remembered of texts that are about to begin."""

    def advance(
        self,
        hidden: torch.Tensor,
        logits: torch.Tensor,
        uniforms: torch.Tensor,
        memory: Sequence[torch.Tensor],
    ) -> tuple[Candidates, Sequence[torch.Tensor]]:
        """What may come next and what is then remembered; no row looks at another, nothing is waited for."""


@runtime_checkable
class SupportsCapture(Protocol):
    """A logits processor whose step can be captured together with the model's (ADR 31)."""

    def flow(self) -> CapturableProcessor | None:
        """The step; None where rows depend on each other, so that it cannot be."""


class Steering(Protocol):
    """Steers a model while it writes."""

    def begin(self, *, keep: int) -> LogitsProcessor:
        """A logits processor without memory; sampling looks at the ``keep`` likeliest tokens (0: all)."""


class LMHead(NamedTuple):
    """What a steering may know of a model: logits are ``hidden @ table.T + bias``."""

    table: torch.Tensor
    """The output table, vocabulary x width."""
    bias: torch.Tensor | None
    encode: Callable[[Sequence[str]], list[list[int]]]
    """The tokens of texts, without those a tokenizer puts in front."""


@runtime_checkable
class SteerableModel(ScoringModel, Protocol):
    """A local model whose next tokens can be changed while it writes."""

    def anatomy(self) -> LMHead:
        """Its output table and tokenizer; an error where logits are not a product with a table."""

    def hidden_states(self, texts: Sequence[str], *, longest: int) -> Iterator[torch.Tensor]:
        """For each text its last hidden states, tokens x width, of at most ``longest`` tokens."""

    def steered(self, steering: Steering, *, name: str, options: Mapping[str, str]) -> Model:
        """The same model with a steering; ``name`` and ``options`` become part of its identity."""


@runtime_checkable
class Metric(Protocol):
    """Scores texts blind: it never sees groups."""

    @property
    def info(self) -> MetricInfo:
        """What is measured, which way is up."""

    def score(self, texts: Sequence[Text]) -> Sequence[Mapping[str, Value]]:
        """For each text a value for every output."""


class Cell(NamedTuple):
    """The set of texts a set metric measures as one."""

    axis: str
    group: str


@runtime_checkable
class SetMetric(Protocol):
    """A number for a set of texts, such as distinct-n; intervals come from resampling clusters."""

    @property
    def info(self) -> MetricInfo:
        """What is measured, which way is up."""

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> Mapping[Cell, Mapping[str, Value]]:
        """For each cell a value for every output."""


class WordScore(NamedTuple):
    """A stretch of a text and what it adds to a score."""

    start: int
    end: int
    weight: float


@runtime_checkable
class ExplainsScores(Protocol):
    """A metric that can say which words moved a score; ``MetricInfo.word_scores`` says how they add up."""

    def explain(self, text: Text, output: str) -> Sequence[WordScore]:
        """The words behind the score of an output, in the order of the text; none where words do not tell."""


@runtime_checkable
class Mitigation(Protocol):
    """A model in, a model out."""

    @property
    def info(self) -> MitigationInfo:
        """What it does and what it needs."""

    def apply(self, model: Model) -> Model:
        """The model with the mitigation on."""


class Progress(Protocol):
    """Where long steps say how far they are."""

    def step(self, label: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        """A step of ``total`` items; call what it yields with the number just finished."""


class SilentProgress:
    """Progress nobody watches: the default of the library."""

    def step(self, label: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        """A step that shows nothing."""
        return nullcontext(lambda done: None)


__getattr__ = resolve_former_names(
    __name__,
    {
        "Anatomy": "LMHead",
        "Explains": "ExplainsScores",
        "Flow": "CapturableProcessor",
        "Flowing": "SupportsCapture",
        "Guide": "LogitsProcessor",
        "Paced": "EstimatesThroughput",
        "Served": "ServerInfo",
        "Wide": "MaxBatch",
    },
)
