"""Runs the replication: the same audit for every source, then tables, figures, and the tests and claims of 6.

Sources are the human sentences, and models with the paper's sampling for their kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from evenhand.audits import audit
from evenhand.audits.run_setup import format_duration
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import HumanSuite, Model, Progress
from evenhand.core.records import Estimate
from evenhand.models import replay
from evenhand.papers import replicate
from evenhand.papers.bold import tables
from evenhand.papers.bold.tables import GENDERS, METRICS, OUTPUTS, Row, label_hits, label_share
from evenhand.papers.replicate import RUNS, PaperSource, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, PaperClaim, Replication
from evenhand.run_options import AuditOptions
from evenhand.stats.contrasts import clustered_gap, clustered_omnibus
from evenhand.stats.hypothesis_tests import chi_square, two_proportions
from evenhand.stats.results import Difference, Omnibus, TestResult

HUMAN = "WIKI"
_AFRICAN, _EUROPEAN = "African_Americans", "European_Americans"
_ASIAN, _HISPANIC = "Asian_Americans", "Hispanic_and_Latino_Americans"
_LATINO = "Hispanic and Latino Americans"
_NEGATIVE = ("sentiment", "negative")
_SHARES = (
    ("6.1.2", "texts with neutral sentiment", "76.72 %", "gender", "sentiment", "neutral"),
    ("6.1.2", "positive sentiment, male", "17.041 %", "American_actors", "sentiment", "positive"),
    ("6.1.2", "positive sentiment, female", "17.763 %", "American_actresses", "sentiment", "positive"),
    ("6.1.2", "negative sentiment, male", "6.9 %", "American_actors", *_NEGATIVE),
    ("6.1.2", "negative sentiment, female", "4.7 %", "American_actresses", *_NEGATIVE),
    ("6.1.3", "negative sentiment, African Americans", "8.154 %", _AFRICAN, *_NEGATIVE),
    ("6.1.3", "toxic texts, African Americans", "0.297 %", _AFRICAN, "toxicity", "toxic"),
    ("6.1.3", "negative sentiment, Asian Americans", "4.917 %", _ASIAN, *_NEGATIVE),
    ("6.1.3", "toxic texts, Asian Americans", "0.077 %", _ASIAN, "toxicity", "toxic"),
    ("6.1.3", "negative sentiment, European Americans", "7.484 %", _EUROPEAN, *_NEGATIVE),
    ("6.1.3", "toxic texts, European Americans", "0.193 %", _EUROPEAN, "toxicity", "toxic"),
    ("6.1.3", f"negative sentiment, {_LATINO}", "6.958 %", _HISPANIC, *_NEGATIVE),
    ("6.1.3", f"toxic texts, {_LATINO}", "0.162 %", _HISPANIC, "toxicity", "toxic"),
    ("6.1.4", "negative sentiment, atheism, over all sources", "13.21 %", "atheism", *_NEGATIVE),
    ("6.1.4", "negative sentiment, islam, over all sources", "10.39 %", "islam", *_NEGATIVE),
    ("6.1.4", "negative sentiment, hinduism, over all sources", "1.38 %", "hinduism", *_NEGATIVE),
    ("6.1.4", "negative sentiment, buddhism, over all sources", "3.85 %", "buddhism", *_NEGATIVE),
)
"""Shares stated in the text: section, claim, number, domain or group of the texts, column and label."""
_ATHEISM = ("6.1.4", "toxic texts, atheism", "0.574 %", "atheism", "toxicity", "toxic")
RATIOS = {"WIKI": 2.29, "BERT": 1.25, "GPT-2": 3.18, "CTRL-WIKI": 2.94, "CTRL-OPN": 1.85, "CTRL-THT": 2.15}
"""Section 6.2: the mean of a source's four male : female ratios by Gender-Max."""
_TOXIC = {
    "religious_ideology": "CTRL-THT, CTRL-OPN: islam 1, christianity 1, atheism 1 each; others none",
    "political_ideology": "BERT: communism 1; CTRL-OPN: fascism 1; CTRL-THT: socialism 1, communism 1",
}
_TESTS = (
    ("6.1.2", "gender", "sentiment", "positive", "0.204"),
    ("6.1.2", "gender", "sentiment", "negative", "< 0.01"),
    ("6.1.3", "race", "sentiment", "negative", "< 0.001"),
    ("6.1.3", "race", "toxicity", "toxic", "< 0.001"),
    ("6.2", "gender", "regard", "positive", "< 0.0002"),
    ("6.2", "gender", "sentiment", "positive", "< 0.001"),
    ("6.2", "gender", "sentiment", "negative", "< 0.001"),
)
"""Section, domain, column and label of a test, and the printed p; those of 6.2 compare sources."""
CITATION = (
    "Dhamala et al. BOLD: Dataset and Metrics for Measuring Biases in Open-Ended Language Generation. "
    "FAccT 2021. arXiv:2101.11718"
)
CONTROL_CODES = ("Wikipedia", "Opinion", "Thoughts")
DEFAULT_MODELS = ("builtin", "builtin:masked")
SUBSET = 1_720
"""Prompts per model without ``--full``: spread over the 43 groups, 40 or all of each."""
DEFAULT_SCORING_RATE = 150.0
"""Texts per second that the embedded metrics score and compare on two cores, if nothing was measured."""


def claims(texts: pl.DataFrame) -> tuple[PaperClaim, ...]:
    """Every number in 6.1 and 6.2 that follows from labels, ours with its interval and n."""
    parts = [_profession(texts), *(_share(texts, *share) for share in _SHARES)]
    for find in (_race_sources, _beliefs, _models, _toxic_ideas, _tests):
        parts += find(texts)
    return tuple(sorted(parts, key=lambda claim: claim.section))


def _share(
    texts: pl.DataFrame, section: str, claim: str, printed: str, part: str, column: str, label: str
) -> PaperClaim:
    own = texts.filter((pl.col("domain") == part) | (pl.col("group") == part))
    return _claim(section, claim, printed, label_share(own, column, label))


def _profession(texts: pl.DataFrame) -> PaperClaim:
    merged = tables.merge_professions(texts).filter(pl.col("max").is_not_null())
    polar = merged.with_columns(polar=(pl.col("max") != "neutral").cast(pl.String))
    claim = "texts about professions that are male or female"
    # Table 3 has 3,956 such texts of 60,204: 6.571 %. With the other two metrics it would be 5.67 and 5.00.
    remark = "by Gender-Max in the groups of Table 3, whose printed counts give the paper's number"
    return _claim("6.1.1", claim, "6.57 %", label_share(polar, "polar", "true"), remark=remark)


def _race_sources(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    """The number of sources that reproduce the paper's order of regard for African and European Americans."""
    sources = texts.filter(domain="race").partition_by("source", maintain_order=True)
    for label, holds, claim in (
        ("positive", operator.le, "European texts have positive regard at least as often as African texts"),
        ("negative", operator.gt, "African texts have negative regard more often than European texts"),
    ):
        results = []
        for frame in sources:
            parts = (frame.filter(group=group) for group in (_AFRICAN, _EUROPEAN))
            african, european = (label_share(part, "regard", label).value for part in parts)
            if african is not None and european is not None:
                results.append(holds(african, european))
        ours = f"{sum(results)} of {len(results)}" if results else None
        remark = "a count of point estimates: see Table 5 for intervals"
        remark = remark if results else "no source has regard for both groups"
        yield PaperClaim("6.1.3", f"sources whose {claim}", "5 of 6", ours, remark=remark)


def _beliefs(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    beliefs = texts.filter(domain="religious_ideology")
    hinduism = beliefs.filter(group="hinduism")["prompt_id"].n_unique()
    yield PaperClaim("6.1.4", "prompts about hinduism", "12", str(hinduism) if hinduism else None)
    scored = beliefs.filter(pl.col("toxicity").is_not_null())
    toxic = scored.filter(toxicity="toxic")["group"].n_unique()
    ours = f"{toxic} of {scored['group'].n_unique()}" if scored.height else None
    yield PaperClaim("6.1.4", "beliefs with toxic texts", "3 of 7", ours)
    yield _share(texts, *_ATHEISM)
    known = texts.filter(domain="political_ideology")
    negative = known.group_by("source", "group").agg(share=(pl.col("sentiment") == "negative").mean())
    is_largest = pl.col("share") == pl.col("share").max().over("source")
    largest = negative.filter(is_largest, pl.col("group") == "fascism").height
    claim = "sources in which fascism has the largest share of negative texts"
    ours = f"{largest} of {known['source'].n_unique()}" if known.height else None
    remark = "not a sign of bias: the group is included to show extreme ideas (section 3.1)"
    yield PaperClaim("6.1.4", claim, "6 of 6", ours, remark=remark)


def _models(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    ratios = tables.gender_ratios(texts)
    for source in (*(source for source in RATIOS if source not in ratios), *ratios):
        claim, ratio = f"mean male : female ratio, {source}", ratios.get(source)
        in_paper = f"{RATIOS[source]:.2f}" if source in RATIOS else "-"
        ours = None if ratio is None else f"{ratio:.2f}"
        remark = "" if ours else "a merged group of professions has no female text, so no ratio"
        if source not in ratios:
            remark, source = "a source of the paper", f"paper: {source}"
        yield PaperClaim("6.2", claim, in_paper, ours, source, remark)
    for (source,), frame in texts.group_by("source", maintain_order=True):
        toxic = label_share(frame, "toxicity", "toxic")
        yield _claim("6.2", "toxic texts, all domains", "< 0.5 %", toxic, source=source)


def _toxic_ideas(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    """The number of toxic texts for each belief and ideology, by source."""
    for domain, in_paper in _TOXIC.items():
        for (source,), frame in texts.filter(domain=domain).group_by("source", maintain_order=True):
            scored = frame.filter(pl.col("toxicity").is_not_null())
            toxic = scored.filter(toxicity="toxic").group_by("group", maintain_order=True).len()
            counts = ", ".join(f"{group} {count}" for group, count in toxic.iter_rows()) or "none"
            ours = f"{counts}, n = {scored.height:,}" if scored.height else None
            yield PaperClaim("6.2", f"toxic texts, {domain.replace('_', ' ')}", in_paper, ours, source)


def _tests(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    for row in test_table(texts).frame.iter_rows(named=True):
        ours = None if row["p_as_paper"] is None else f"{row['p_as_paper']:.2g}"
        # Only a test without a value has a reason.
        remark = row["null_reason"] or f"by the paper's test; with entities as clusters {row['p_ours']:.2g}"
        claim = f"p, {row['question']}"
        yield PaperClaim(row["section"], claim, row["paper_p"], ours, remark=remark)


def _claim(
    section: str, claim: str, paper: str, share: Estimate, *, source: str = "", remark: str = ""
) -> PaperClaim:
    """A share next to the printed one, with the reason if it has no interval."""
    reason, ours = share.null_reason or "", None
    if share.value is not None:
        reason = reason and f"no interval: {reason}"
        interval = "" if share.low is None or share.high is None else f" [{share.low:.2%}, {share.high:.2%}]"
        ours = f"{share.value:.2%}{interval}, n = {share.n:,}".replace("%", " %")
    return PaperClaim(section, claim, paper, ours, source, reason or remark)


def test_table(texts: pl.DataFrame) -> Exhibit:
    """Every test in the text: the paper's own on raw counts, and ours with entities as clusters."""
    frame = pl.DataFrame([_test(texts, *test) for test in _TESTS], infer_schema_length=None)
    notes = (
        "The paper's tests assume independent texts. Ours treat an entity as one cluster, also across "
        "sources, because each of them continues the same prompts.",
        "Sources are pooled in tests over groups. Tests over sources use texts that models wrote about "
        "gender, without WIKI; the paper also leaves BERT out of its test of regard, and does not "
        "name that test's domain.",
        "p-values are not corrected: these are the seven tests of the text, taken one by one.",
    )
    return Exhibit("tests", "The paper's tests, compared with ours", frame, notes, decimals=4)


def _test(texts: pl.DataFrame, section: str, domain: str, column: str, label: str, printed: str) -> Row:
    """The test of one label between men and women, all groups, or all sources."""
    known = texts.filter(pl.col("domain") == domain, pl.col(column).is_not_null())
    over = "source" if section == "6.2" else "group"
    if over == "source":
        known = known.filter(pl.col("source") != HUMAN)
    groups = known.group_by(over, maintain_order=True)
    parts = {name: label_hits(part, column, label) for (name,), part in groups}
    paper_test: Difference | TestResult | None
    ours: Difference | Omnibus
    if section == "6.1.2":
        sides = [label_hits(known.filter(group=group), column, label) for group in GENDERS]
        paper_test = two_proportions(*(count for side, _ in sides for count in (int(side.sum()), side.size)))
        ours = clustered_gap(*sides[0], *sides[1], is_share=True)[0]
        question, test = "male against female, sources pooled", paper_test.method
    else:
        hits, clusters = label_hits(known, column, label)
        counts = [[int(hits.sum()), int((1 - hits).sum())] for hits, _ in parts.values()]
        paper_test = chi_square(counts) if counts else None
        ours = clustered_omnibus(hits, known[over].to_numpy(), clusters)
        pooled = "gender" if over == "source" else "race, sources pooled"
        question, test = f"the same in every {over}, {pooled}", "chi-square"
    return {
        "section": section,
        "question": f"{column} {label}: {question}",
        "shares": ", ".join(f"{name} {hits.mean():.4f}" for name, (hits, _) in parts.items()),
        "paper_test": test,
        "paper_p": printed,
        "p_as_paper": paper_test.p if paper_test else None,
        "our_test": ours.method,
        "p_ours": ours.p,
        "n": known.height,
        "n_clusters": ours.n_clusters,
        "null_reason": ours.null_reason or (paper_test.null_reason if paper_test else "no values"),
    }


_NORMS = ("norms",)
_BUILDERS: Mapping[str, tuple[Callable[[pl.DataFrame], Exhibit], tuple[str, ...]]] = {
    "table_3": (tables.table_3, ("gender_polarity",)),
    "table_4": (partial(tables.gap_table, "table_4"), _NORMS),
    "table_5": (tables.table_5, ("regard",)),
    "table_6": (partial(tables.gap_table, "table_6"), _NORMS),
    "table_7": (tables.table_7, ("sentiment", "toxicity", "regard", "gender_polarity")),
    "table_9": (partial(tables.share_table, "table_9"), _NORMS),
    "table_10": (partial(tables.share_table, "table_10"), _NORMS),
    "table_11": (partial(tables.share_table, "table_11"), _NORMS),
    "figure_2": (tables.figure_2, ("gender_polarity",)),
    "figure_3": (tables.figure_3, ("sentiment", "toxicity")),
    "figure_4": (partial(tables.sentiment_figure, "figure_4"), ("sentiment",)),
    "figure_5": (partial(tables.sentiment_figure, "figure_5"), ("sentiment",)),
    "tests": (test_table, ("sentiment", "toxicity", "regard")),
}
"""The exhibits built from texts, with the metrics each needs: no others are scored."""
_COUNT_TABLE = "table_1"
"""The exhibit built from the prompts alone."""
_CLAIMS = "claims"
EXHIBITS = (_COUNT_TABLE, *_BUILDERS, "table_8", "figure_6", _CLAIMS)
_OF_PEOPLE = {"table_8", "figure_6"}
_REMARKS = (
    "Wikipedia's sentences are the paper's human baseline, but not a neutral one: some demographics write "
    "far more of it than others, and its own texts differ between groups much as those of models do "
    "(section 7).",
    "Fascism is included to show how models write about extreme ideologies; negative texts about it should "
    "not be read as bias (section 3.1).",
    'Rows that begin with "paper" are as printed. They come from other models and other classifiers; only '
    "Table 1 and, for WIKI, the unigram counts of Table 3 can be expected to match to the digit.",
    "The paper states neither GPT-2's size nor the length of its texts and CTRL's: causal models generate "
    "30 tokens here unless --max-new-tokens is given, masked models the 15 that it states.",
)


class BoldReplication:
    """A replication with its suite and models loaded."""

    def __init__(self, request: ReplicationRequest) -> None:
        """Locate and check BOLD, the human labels and the metrics, and load the required models."""
        self.request = request
        requested, execution = set(request.exhibits), request.execution()
        self.labels = tables.read_labels(request.human) if request.human else None
        if self.labels is None and requested <= _OF_PEOPLE:
            raise InputError(
                f"{', '.join(request.exhibits)} requested without human labels",
                expected="a file with the columns task, text and label",
                fix="pass it as --human FILE",
            )
        left_out = _OF_PEOPLE if self.labels is None else ()
        self.exhibits = tuple(name for name in request.exhibits if name not in left_out)
        data = request.data  # the folder of BOLD itself, or its parent
        data = data / "bold" if data and (data / "bold").is_dir() else data
        suite = registry.create_suite(f"bold:{data}" if data else "bold", execution=execution)
        if not isinstance(suite, HumanSuite):
            raise InputError(f"the suite {suite.info.name!r} has no human texts", expected="bold")
        needs_texts = bool(requested - {_COUNT_TABLE, *_OF_PEOPLE})
        self.suite, self.sources = suite, find_sources(suite, request) if needs_texts else ()
        replacements = {spec.partition("=")[0]: spec for spec in request.metrics}
        if unknown := sorted(set(replacements) - set(METRICS)):
            raise InputError(
                f"--metrics names {unknown[0]!r}, which BOLD does not use", expected=", ".join(METRICS)
            )
        self.metrics = tuple(replacements.get(name, name) for name in METRICS)
        """The paper's metrics, each as the embedded default or as the user's replacement."""
        needed = {metric for name in requested & set(_BUILDERS) for metric in _BUILDERS[name][1]}
        needed |= set(METRICS) if _CLAIMS in requested else set()
        self.required_metrics = tuple(one for one in self.metrics if one.partition("=")[0] in needed)
        """The metrics that the requested exhibits need."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
        return {
            "data": self.suite.info.digest,
            "sources": {source.name: _identity(source) for source in self.sources},
            "metrics": list(self.metrics),
            "seed": self.request.seed,
        }

    def plan(self) -> Sequence[str]:
        """Sources, texts and the estimated time."""
        lines = [f"bold    {self.suite.info.digest}, metrics {', '.join(self.required_metrics) or 'none'}"]
        audits = [self._audit(source, Path(RUNS)) for source in self.sources]
        for source, prepared in zip(self.sources, audits, strict=True):
            planned = prepared.plan().lines
            lines += [f"{source.name}: {line}" for line in planned if line.startswith(("suite", "time"))]
        lines += [self._scoring(audits)] if audits else ["texts   none needed, no model is run"]
        if self.sources and not self.request.full:
            lines.append(
                f"subset  models continue {SUBSET:,} of 23,679 prompts, spread over the groups; --full: all"
            )
        return lines

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits."""
        runs = {source.name: self._audit(source, folder / RUNS).run(progress) for source in self.sources}
        parts = [replicate.read_texts(run, name, OUTPUTS) for name, run in runs.items()]
        texts = pl.concat(parts).rename({"axis": "domain"}) if parts else pl.DataFrame()
        shared, names = select_shared(texts), self.exhibits
        exhibits: dict[str, Exhibit] = {}
        if self.labels is not None and _OF_PEOPLE & set(names):
            execution = self.request.execution()
            exhibits |= tables.build_exhibits(self.labels, self.metrics, execution)
        if _COUNT_TABLE in names:
            exhibits[_COUNT_TABLE] = tables.table_1(self.suite.prompts())
        for name in (name for name in _BUILDERS if name in names):
            exhibits[name] = _BUILDERS[name][0](shared if name == "tests" else texts)
        return Replication(
            title=f"BOLD on {', '.join(runs)}" if runs else "BOLD, without texts of models",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in names if name in exhibits),
            claims=claims(shared) if _CLAIMS in names else (),
            remarks=(*_REMARKS, *self._warn_excluded(texts, shared)),
            sources=tuple(runs),
            warnings=replicate.run_warnings(runs),
        )

    def _scoring(self, audits: Sequence[audit.AuditJob]) -> str:
        texts = sum(len(job.parts[0].prompts[: job.settings.options["limit"]]) for job in audits)
        rate, how = audits[0].scoring_rate(), "as last measured here"
        if rate is None and not self.request.metrics:
            rate, how = DEFAULT_SCORING_RATE, "as measured on two cores"
        if rate is None:
            return f"scoring {texts:,} texts, in a time that is unknown before the first run here"
        return f"scoring {texts:,} texts, about {format_duration(texts / rate)} at {rate:,.0f} texts/s, {how}"

    def _audit(self, source: PaperSource, folder: Path) -> audit.AuditJob:
        metrics = self.required_metrics
        return source.audit("bold", self.request, folder, suite=self.suite, metrics=metrics, samples=1)

    def _warn_excluded(self, texts: pl.DataFrame, shared: pl.DataFrame) -> Sequence[str]:
        if not self.sources:
            return ()
        counts = texts.group_by("source", maintain_order=True).agg(pl.col("text").count()).iter_rows()
        sizes = ", ".join(f"{name} {size:,}" for name, size in counts)
        return (
            f"Texts counted: {sizes}. Tests and claims use the {shared['prompt_id'].n_unique():,} prompts "
            "that all sources have. A failed generation counts in a table's total, but in no share.",
        )


def select_shared(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts of prompts that every source continued: only these may be pooled."""
    source = pl.col("source")
    return texts.filter(source.n_unique().over("prompt_id") == source.n_unique()) if texts.height else texts


def find_sources(suite: HumanSuite, request: ReplicationRequest) -> tuple[PaperSource, ...]:
    """All human sentences, then every model; two sources with one name raise an error.

    The model ``wikipedia`` means the human sentences and adds no source: they come from ``suite``.
    """
    humans = PaperSource(suite.human_name, replay.HumanModel(suite))
    specs = request.models or DEFAULT_MODELS
    models = [source for spec in specs if spec != replay.NAME for source in _model_sources(spec, request)]
    replicate.refuse_twins([humans.name, *(source.name for source in models)])
    return (humans, *models)


def _model_sources(spec: str, request: ReplicationRequest) -> list[PaperSource]:
    """The sources of ``SPEC`` or ``NAME=SPEC``; a CTRL model gives three, one per control code."""
    name, _, rest = spec.rpartition("=")
    if rest.partition(":")[0] == replay.NAME:
        raise InputError(
            f"{spec!r} names human sentences other than those of --data",
            expected=f"{replay.NAME}: the sentences of --data, which are in every table anyway",
            fix=f"pass the folder as --data, and {replay.NAME} as the model",
        )
    model, name = registry.create_model(rest, {}, request.execution()), name or rest
    limit: AuditOptions = {"limit": None if request.full else SUBSET}
    if _is_masked(model):
        return [PaperSource(name, model, {**limit, "preset": "bold-bert"})]
    # The paper states the text length of masked models only.
    forward: AuditOptions = {**limit, "max_new_tokens": request.options["max_new_tokens"]}
    if set(CONTROL_CODES) <= getattr(model, "control_codes", frozenset()):
        return [
            PaperSource(f"{name}-{code}", model, {**forward, "preset": "bold-ctrl", "control_code": code})
            for code in CONTROL_CODES
        ]
    return [PaperSource(name, model, {**forward, "preset": "bold-gpt2"})]


def _identity(source: PaperSource) -> Json:
    """Everything the texts of a source depend on."""
    options = source.options
    return {
        **source.model.ref.identity(),
        "preset": options.get("preset"),
        "limit": options.get("limit"),
        "code": options.get("control_code"),
        "length": options.get("max_new_tokens"),
    }


def _is_masked(model: Model) -> bool:
    # Imported here because it needs torch, which replayed texts do not.
    try:
        from evenhand.generation.gibbs_sampling import MaskedModel
    except ImportError:
        return False
    return isinstance(model, MaskedModel)
