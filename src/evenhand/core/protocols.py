"""What a suite, a model, a metric and a mitigation must implement. There is no base class to inherit from."""

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
        """The suite's name, axes and comparison settings."""

    def prompts(self) -> Iterator[Prompt]:
        """The prompts, always in the same order."""


@runtime_checkable
class HumanSuite(Suite, Protocol):
    """A suite that includes human-written texts for its prompts, to compare models with."""

    @property
    def human_name(self) -> str:
        """The name of these texts in tables, such as WIKI."""

    def human_texts(self) -> Mapping[str, str]:
        """Prompt id to the human-written text, which begins with the prompt."""


@runtime_checkable
class Model(Protocol):
    """Text in, text out: every hosted API can implement it."""

    @property
    def ref(self) -> ModelRef:
        """Identifies the model."""

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they finish, in any order, one per request and sample."""


@runtime_checkable
class ResolvesSpec(Protocol):
    """A model that knows before generating what it supports, and which defaults it uses."""

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec with unset fields filled in; an error for sampling that the model does not support."""


@runtime_checkable
class EstimatesThroughput(Protocol):
    """A model that can estimate its speed before its first run."""

    def pace(self, spec: GenerationSpec) -> float:
        """Lower bound on tokens per second, from a one-second trial; infinite if no text is generated."""


@runtime_checkable
class MaxBatch(Protocol):
    """A model that can generate more texts in parallel than a shard has."""

    @property
    def at_once(self) -> int:
        """Minimum number of texts to request together."""


@runtime_checkable
class ServerInfo(Protocol):
    """A model behind a server that reports its identity."""

    @property
    def served_by(self) -> Mapping[str, str]:
        """The server's latest report on itself, such as ``model`` and ``fingerprint``."""


@runtime_checkable
class ScoringModel(Model, Protocol):
    """A model that also computes log-probabilities."""

    def log_likelihoods(self, texts: Sequence[str]) -> Sequence[tuple[float, int]]:
        """For each text its natural log-probability and the number of tokens summed over."""


class Step(NamedTuple):
    """The state of a batch before the next tokens are sampled."""

    hidden: torch.Tensor
    """Rows x width: the last hidden states."""
    logits: torch.Tensor
    """Rows x vocabulary: the logits of the model itself."""
    rows: Sequence[int]
    """Ids of the texts, all distinct."""
    last: torch.Tensor
    """The last token of each text; at the start, the last token of its prompt."""
    uniforms: torch.Tensor
    """The uniform numbers in [0, 1) that the next tokens are sampled with."""


class Candidates(NamedTuple):
    """The candidates for the next token of each row."""

    logits: torch.Tensor
    """Rows x candidates."""
    tokens: torch.Tensor | None = None
    """The token of each logit, rows x candidates; None if they are the whole vocabulary in order."""


class LogitsProcessor(Protocol):
    """Changes the candidates for the next tokens of one batch, and may keep state for each text."""

    def __call__(self, step: Step) -> Candidates:
        """The candidates for the next tokens."""


class CapturableProcessor(Protocol):
    """A logits processor that runs without Python state: its state is tensors, with one row per text."""

    def fresh(self, rows: int, device: torch.device) -> Sequence[torch.Tensor]:
        """The initial state for new texts."""

    def advance(
        self,
        hidden: torch.Tensor,
        logits: torch.Tensor,
        uniforms: torch.Tensor,
        memory: Sequence[torch.Tensor],
    ) -> tuple[Candidates, Sequence[torch.Tensor]]:
        """The next candidates and the new state; rows are independent, and nothing waits for the device."""


@runtime_checkable
class SupportsCapture(Protocol):
    """A logits processor whose step can be captured in one CUDA graph with the model's (ADR 31)."""

    def flow(self) -> CapturableProcessor | None:
        """The capturable step; None if rows depend on each other, which rules out capture."""


class Steering(Protocol):
    """Steers a model during generation."""

    def begin(self, *, keep: int) -> LogitsProcessor:
        """A processor with fresh state; sampling considers the ``keep`` most likely tokens (0: all)."""


class LMHead(NamedTuple):
    """What a steering can access of a model: logits are ``hidden @ table.T + bias``."""

    table: torch.Tensor
    """The output embedding, vocabulary x width."""
    bias: torch.Tensor | None
    encode: Callable[[Sequence[str]], list[list[int]]]
    """Tokenizes texts, without the tokens that a tokenizer prepends."""


@runtime_checkable
class SteerableModel(ScoringModel, Protocol):
    """A local model whose next tokens can be changed during generation."""

    def anatomy(self) -> LMHead:
        """Its output embedding and tokenizer; an error if logits are not a product with an embedding."""

    def hidden_states(self, texts: Sequence[str], *, longest: int) -> Iterator[torch.Tensor]:
        """For each text its last hidden states, tokens x width, of at most ``longest`` tokens."""

    def steered(self, steering: Steering, *, name: str, options: Mapping[str, str]) -> Model:
        """The same model with a steering applied; ``name`` and ``options`` become part of its identity."""


@runtime_checkable
class Metric(Protocol):
    """Scores texts without knowing their groups."""

    @property
    def info(self) -> MetricInfo:
        """What is measured, and what larger values mean."""

    def score(self, texts: Sequence[Text]) -> Sequence[Mapping[str, Value]]:
        """For each text, a value for every output."""


class Cell(NamedTuple):
    """The set of texts that a set metric measures as one."""

    axis: str
    group: str


@runtime_checkable
class SetMetric(Protocol):
    """Computes one number for a set of texts, such as distinct-n; intervals come from resampling clusters."""

    @property
    def info(self) -> MetricInfo:
        """What is measured, and what larger values mean."""

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> Mapping[Cell, Mapping[str, Value]]:
        """For each cell, a value for every output."""


class WordScore(NamedTuple):
    """A span of a text and its contribution to a score."""

    start: int
    end: int
    weight: float


@runtime_checkable
class ExplainsScores(Protocol):
    """A metric that can attribute a score to words; ``MetricInfo.word_scores`` says how they add up."""

    def explain(self, text: Text, output: str) -> Sequence[WordScore]:
        """The words that contribute to an output's score, in text order; empty if words do not decide it."""


@runtime_checkable
class Mitigation(Protocol):
    """Takes a model and returns a mitigated model."""

    @property
    def info(self) -> MitigationInfo:
        """What it does and what it requires."""

    def apply(self, model: Model) -> Model:
        """The model with the mitigation applied."""


class Progress(Protocol):
    """Where long steps report their progress."""

    def step(self, label: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        """A step of ``total`` items; call the yielded function with the number of items just finished."""


class SilentProgress:
    """Progress that is not shown: the default of the library."""

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
