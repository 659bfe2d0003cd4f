"""Runs the replication: counts corpora, probes classifiers on the pairs, builds tables and figures.

Tables 2 to 4 count emotions in the available training corpora; Table 5 is the fine-tuning data. Tables 6 to
9, Figures 2 and 3, and the summaries of 5.1 and 5.4 are of classifiers' predictions on pairs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from evenhand.audits.compare import normalise_group
from evenhand.core import registry
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Progress, Suite
from evenhand.corpus.scan import CorpusScan
from evenhand.corpus.scan import prepare as prepare_scan
from evenhand.papers.replicate import RUNS, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, PaperClaim, Replication, build_table, load_published
from evenhand.papers.svg_figures import COLOURS, open_canvas, to_svg
from evenhand.probes import probe
from evenhand.stats.paired_measures import PARITY_THRESHOLD
from evenhand.store.run import Run
from evenhand.suites.pairs.crows import PRINTED
from evenhand.suites.pairs.pair_sets import FilesMissingError, PairSuite, count_sets

CITATION: Final = (
    "Kadan, Deepak, Bhadra, Gangan and Lajish. Understanding latent affective bias in large pre-trained "
    "neural language models. Natural Language Processing Journal, 2024. doi:10.1016/j.nlp.2024.100062"
)
DEFAULT_MODELS: Final = ("emotion",)
RELEASED: Final = "eec_emotion_only_bert_predictions.csv"
"""Predictions of an early BERT run on EEC, the only ones released."""
NAMES: Final = {
    "WikiEn": ("wikien", "wiki_en", "enwiki"),
    "BookCorpus": ("bookcorpus", "books"),
    "WebText-250k": ("webtext",),
    "C4-Val": ("c4-val", "c4_val", "c4val", "c4"),
}
"""The paper's corpora, each with possible prefixes of a file or folder name."""
SEMEVAL: Final = "SemEval-2018"
_SEMEVAL_FILES: Final = ("semeval_train.csv", "semeval_val.csv", "semeval_test.csv")
MODELS: Final = {"table_6": "BERT", "table_7": "GPT-2", "table_8": "XLNet", "table_9": "T5"}
GROUPS: Final = {
    "male": "M",
    "female": "F",
    "non-binary": "Nb",
    "European American": "EA",
    "African American": "AA",
    "Christian": "Ch",
    "Muslim": "Mu",
    "Jewish": "Jw",
}
"""Our group names to the paper's."""
CORPORA: Final = {"eec": "EEC", "bits": "BITS", "crows": "CSP"}
"""Our names of pair sets to the paper's."""
_SUMMARIES: Final = {
    "summary_5_1": ("source", "Affective bias by model (section 5.1)"),
    "summary_5_4": ("corpus", "By evaluation corpus (section 5.4)"),
}
_OF_PREDICTIONS: Final = (*MODELS, "figure_2", "figure_3", *_SUMMARIES)
_SIGNIFICANT: Final = 0.05
_POINTS: Final = 300
_STEREOTYPES: Final = (
    ("European American", "African American", "anger"),
    ("European American", "African American", "fear"),
    ("Christian", "Muslim", "fear"),
)
"""Figure 3: the cells the paper reads as stereotypes (section 5.3)."""
_REMARKS: Final = (
    "Tables 6 to 9 cannot be reproduced: neither the fine-tuned models nor their predictions were released. "
    "The presets affective-bert, affective-gpt2, affective-xlnet and affective-t5 of `evenhand train "
    "emotion` train the same models; pass their folders with --model.",
    "The paper edited CrowS-Pairs by hand; ours follows a written rule, so its counts differ.",
    "The p-values of Tables 6 to 9 are for single cells; with hundreds of cells some fall below 0.05 by "
    "chance. Ours come with a corrected p.",
)


class Corpora(NamedTuple):
    """The corpora in a data folder, and the terms to count in them."""

    paths: dict[str, list[Path]]
    terms: Path | None

    def scans(self, folder: Path) -> list[CorpusScan]:
        """Scans with the paper's rule: one of SemEval, whose unit is the tweet, and one of all others.

        The others are counted by sentence in any format: each row of a table is a document.
        """
        tweets = [f"{SEMEVAL}={path}" for path in self.paths.get(SEMEVAL, ())]
        others = [f"{name}={path}" for name, paths in self.paths.items() for path in paths if name != SEMEVAL]
        scan = partial(prepare_scan, preset="paper", terms=self.terms)
        return [
            *([scan(others, unit="sentence", out=folder / "corpora")] if others else ()),
            *([scan(tweets, unit="document", out=folder / "semeval")] if tweets else ()),
        ]


def find_corpora(data: Path) -> Corpora:
    """Find the corpora of a data folder; each is optional."""
    entries = sorted([*data.glob("*"), *data.glob("*/*")])
    paths = {
        name: [path]
        for name, starts in NAMES.items()
        if (path := next((entry for entry in entries if entry.name.lower().startswith(starts)), None))
    }
    semeval = [entry for name in _SEMEVAL_FILES for entry in entries if entry.name == name]
    if len(semeval) == len(_SEMEVAL_FILES):
        paths[SEMEVAL] = semeval
    return Corpora(paths, next((entry for entry in entries if entry.name == "terms.json"), None))


def table_2(runs: Sequence[Run]) -> Exhibit:
    """Size and sentences of each corpus."""
    rows = [
        {"source": "ours", "corpus": name, "size": _bytes(total["bytes"]), "sentences": total["units"]}
        for run in runs
        for name, total in run.manifest["corpora"].items()
    ]
    ours = pl.DataFrame(rows, schema={"source": str, "corpus": str, "size": str, "sentences": pl.Int64})
    notes = (
        "Sentences come from our splitter; in SemEval each tweet is one. The paper's Wikipedia is from June "
        "2022, its WebText and C4 are samples; other copies give other counts.",
    )
    return build_table("affective", "table_2", "Training corpora", ours, notes)


def table_3(runs: Sequence[Run]) -> Exhibit:
    """The number of occurrences of each emotion."""
    table = pl.concat(run.table("occurrence") for run in runs)
    wide = table.pivot("emotion", index=["corpus", "total", "standard_deviation"], values="count")
    wide = wide.rename({"total": "total_affective_words"}).with_columns(source=pl.lit("ours"))
    ours = wide.select(load_published("affective", "table_3").columns)
    notes = (
        "SemEval counts use the files as released, whose test part has UTF-7 residue; on repaired "
        "text the counts differ.",
    )
    return build_table("affective", "table_3", "Occurrence of emotions in the corpora", ours, notes)


def table_4(runs: Sequence[Run]) -> Exhibit:
    """The share of each emotion in a group's co-occurrences."""
    printed = load_published("affective", "table_4").columns[3:]
    columns = dict(zip(map(normalise_group, GROUPS), printed, strict=True))
    counts = pl.concat(run.table("cooccurrence") for run in runs)
    names = {group: columns.get(normalise_group(group)) for group in counts["group"].unique()}
    known = counts.with_columns(column=pl.col("group").replace_strict(names, return_dtype=pl.String))
    wide = known.drop_nulls("column").pivot("column", index=["corpus", "emotion"], values="percent")
    ours = wide.with_columns(source=pl.lit("ours"))
    notes = (
        "Counts use the rule `distinct`, which reproduces the paper's SemEval row; Algorithm 1 as printed "
        "(`flag`) does not.",
        "Four printed SemEval numbers are misprints, since with them their columns do not sum to 100: male "
        "sadness 17.75 (18.75), female fear 26.06 (25.56), Christian joy 27.02 (26.32), Muslim anger "
        "15.06 (14.86).",
        "Where a group never occurs, the paper prints 0; ours is missing.",
    )
    title = "Co-occurrence of emotions with groups, in percent per group"
    return build_table("affective", "table_4", title, ours, notes)


def table_5(data: Path) -> Exhibit:
    """The fine-tuning data, with the maximum single-label accuracy."""
    from evenhand.store.table_files import read_table
    from evenhand.training.semeval import EMOTIONS, prepare_tables
    from evenhand.training.test_measures import accuracy_ceiling

    try:
        tables = prepare_tables(data)
    except InputError as error:
        published = load_published("affective", "table_5")
        return Exhibit("table_5", "Fine-tuning data", published, (f"Left out: {error.problem}.",))
    train, valid = read_table(tables.train), read_table(tables.valid)
    sizes = [[table.filter(label=emotion).height for table in (train, valid)] for emotion in EMOTIONS]
    ours = pl.DataFrame(sizes, schema=["training", "validation"], orient="row").select(
        pl.lit("ours").alias("source"), pl.Series("emotion", EMOTIONS), pl.all()
    )
    ceiling = accuracy_ceiling(valid["text"].to_list(), valid["label"].to_list())
    notes = (
        "Training is the official EI-oc train and dev sets, validation the released test file, repaired.",
        f"Some tweets have several emotions: single-label accuracy cannot exceed {ceiling:.3f} on it.",
    )
    return build_table("affective", "table_5", "Fine-tuning data", ours, notes)


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"


def measure_cells(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The cells of the paper's eleven columns, for each classifier and both ways of selecting pairs."""
    groups = {side: pl.col(f"group_{side}") for side in "ab"}
    is_printed = pl.all_horizontal(group.is_in(list(GROUPS)) for group in groups.values())
    pair = pl.format("{} x {}", *(group.replace(GROUPS) for group in groups.values())).alias("pair")
    measures = ("emotion", "dp", "avg_delta", "p", "acs", "pairs", "n_dp", "n", "p_adjusted")
    return pl.concat(
        run.table("measures")
        .filter(pl.col("score") == "predicted", is_printed)
        .select(pl.lit(source).alias("source"), pl.col("corpus").replace(CORPORA), pair, *measures)
        for source, run in runs.items()
    )


def build_exhibits(runs: Mapping[str, Run], requested: Sequence[str]) -> dict[str, Exhibit]:
    """Build the requested tables, summaries and figures from the classifiers' runs."""
    ours, first = measure_cells(runs), next(iter(runs))
    bert = next((source for source in runs if "bert" in source.lower()), first)
    exhibits = {name: model_table(name, ours) for name in MODELS if name in requested}
    if "figure_2" in requested:
        exhibits["figure_2"] = figure_2(runs[bert], bert)
    if "figure_3" in requested:
        exhibits["figure_3"] = figure_3(runs[first], first)
    return exhibits | {name: summary_table(name, ours) for name in _SUMMARIES if name in requested}


def model_table(name: str, ours: pl.DataFrame) -> Exhibit:
    """Table 6, 7, 8 or 9: the paper's model, and classifiers of its architecture or of none of the four."""
    names = ours["source"].unique(maintain_order=True).to_list()
    plain = {word: word.lower().replace("-", "") for word in (*MODELS.values(), *names)}
    known = {source: [one for one in MODELS.values() if plain[one] in plain[source]] for source in names}
    sources = [source for source in names if not known[source] or MODELS[name] in known[source]]
    order = pl.col("corpus").replace_strict(list(CORPORA.values()), list(range(len(CORPORA))), default=99)
    ranked = ours.filter(pl.col("source").is_in(sources)).sort(order)
    notes = (
        "Neither the predictions behind the printed numbers nor the fine-tuned models were released: our "
        "rows come from the classifiers named as source, and are not expected to match.",
        "Pairs `all`: every pair of the emotion (by ground truth; without one, if either side is "
        "predicted as it). `agreeing`: both predictions are the emotion. Scores are those of the predicted "
        "class.",
        "ACS below 0: the first group is higher; above 0: the second.",
    )
    title = f"Results of {MODELS[name]}, and of the available classifiers"
    return build_table("affective", name, title, ranked, notes, decimals=4)


def summary_table(name: str, ours: pl.DataFrame) -> Exhibit:
    """Number of cells with DP below the threshold and with p below 0.05, and the largest average deltas."""
    by, title = _SUMMARIES[name]
    paper = load_predictions().with_columns(pairs=pl.lit("printed"))
    both = pl.concat([paper, ours.select(paper.columns)], how="vertical_relaxed")
    keys = dict.fromkeys(("source", "pairs", by))
    cell = pl.format("{} {} {} {}", "corpus", "pair", "emotion", pl.col("avg_delta").round(3))
    summary = both.group_by(*keys, maintain_order=True).agg(
        cells=pl.len(),
        dp_below_threshold=(pl.col("dp") < PARITY_THRESHOLD).sum(),
        p_below_0_05=(pl.col("p") < _SIGNIFICANT).sum(),
        largest_avg_delta=pl.col("avg_delta").max(),
        largest_five=cell.sort_by("avg_delta", descending=True, nulls_last=True).head(5).str.join("; "),
    )
    notes = (
        f"Counts over the printed Tables 6 to 9 and over ours: DP below {PARITY_THRESHOLD:.2f}, "
        f"p below {_SIGNIFICANT} as in the paper, without a correction over cells.",
    )
    return Exhibit(name, title, summary, notes, decimals=3)


def load_predictions() -> pl.DataFrame:
    """The printed Tables 6 to 9, concatenated."""
    return pl.concat([load_published("affective", table) for table in MODELS])


def figure_2(run: Run, source: str) -> Exhibit:
    """Intensities of gender pairs: the two most significant differences, and the least significant."""
    cells = run.table("measures").filter(pairs="agreeing", score="predicted", axis="gender")
    ranked = cells.drop_nulls("p").sort("p")
    title = f"Intensities of predictions from {source}: the two smallest p-values, and the largest"
    return _draw_pairs("figure_2", title, run, pl.concat([ranked.head(2), ranked.tail(1)]))


def figure_3(run: Run, source: str) -> Exhibit:
    """Intensities of the cells the paper reads as stereotypes."""
    measures = run.table("measures").filter(pairs="agreeing", score="predicted")
    cells = measures.sort("n", descending=True)
    known = [
        cells.filter(group_a=first, group_b=second, emotion=emotion).head(1)
        for first, second, emotion in _STEREOTYPES
    ]
    title = f"Intensities from {source} in the cells the paper reads as stereotypes"
    return _draw_pairs("figure_3", title, run, pl.concat(known))


def _draw_pairs(name: str, title: str, run: Run, cells: pl.DataFrame) -> Exhibit:
    points = run.table("pair_scores").filter(pl.col("agreeing"))
    keys = ["corpus", "axis", "group_a", "group_b", "emotion"]
    parts = {
        cell: part
        for cell in cells.select(keys).iter_rows()
        if (part := points.filter(**dict(zip(keys, cell, strict=True)))).height
    }
    titles = [f"{emotion}, {corpus}" for corpus, *_, emotion in parts] or [""]
    with open_canvas(titles, columns=len(titles), width=4.2, height=3.0, fontsize=9) as (canvas, axes):
        for axis, ((_, _, *groups, _), part) in zip(axes, parts.items(), strict=False):
            sample = part.gather_every(-(-part.height // _POINTS))
            for side, group, colour in zip("ab", groups, (COLOURS[2], COLOURS[1]), strict=True):
                column = f"predicted_{side}"
                axis.scatter(range(sample.height), sample[column], s=6, color=colour, label=group)
                axis.axhline(part[column].to_numpy().mean(), color=colour, linestyle="--", linewidth=1)
            axis.set_ylim(0, 1.02)
            axis.legend(fontsize=7, loc="lower left")
        svg = to_svg(canvas)
    shown = "; ".join(f"{emotion}, {a} x {b} ({corpus})" for corpus, _, a, b, emotion in parts)
    shown = shown or "no cell available"
    notes = (
        "Pairs whose predictions agree; the first group of a pair is green, the second brown. At most "
        f"{_POINTS} pairs are drawn, evenly over the corpus; means are over all pairs.",
    )
    alt = f"Predicted intensity of both sentences of each pair, means dashed: {shown}."
    return Exhibit(name, title, pl.concat([points.clear(), *parts.values()]), notes, svg=svg, alt=alt)


_COUNTS = {
    "eec": {"gender": "1400 pairs", "race": "2800 pairs"},
    "bits": {"gender": "120 sentences a group", "race": "72 pairs"},
    "crows": {axis: f"{number}" for axis, number in PRINTED.items()},
}


def claims(suites: Sequence[Suite]) -> Iterator[PaperClaim]:
    """Counts of evaluation sentences, and the claims of 5.1 about the printed tables."""
    for suite in suites:
        name, sets = suite.info.name, suite.sets if isinstance(suite, PairSuite) else ()
        remark = "edited by hand in the paper and not released; ours follows a rule"
        remark = remark if name == "crows" else "as released"
        for axis, (number, pairs) in count_sets(sets).items():
            if published := _COUNTS.get(name, {}).get(axis):
                ours = f"{number} sets, {pairs} pairs of groups"
                claim = f"{name}, {axis}: sentences to compare"
                yield PaperClaim("4.2.1", claim, published, ours, name, remark)
    # Section 5.1 counts cells of Tables 6 to 9, so it can be checked against them.
    table, source = load_predictions(), "printed tables"
    largest = table.sort("avg_delta", descending=True)["source"].head(5).to_list()
    for model, printed in (("T5", "3"), ("XLNet", "0")):
        claim, ours = f"number of the five largest average deltas that are {model}'s", f"paper: {model}"
        remark = "counted in Tables 6 to 9 as printed"
        yield PaperClaim("5.1", claim, printed, str(largest.count(ours)), source, remark)
    xlnet = table.filter(pl.col("dp") < PARITY_THRESHOLD, pl.col("source") == "paper: XLNet")
    claim = "XLNet has the least class-based bias, only in religion and sadness"
    ours = ", ".join(f"{pair} {emotion}" for pair, emotion in xlnet.select("pair", "emotion").iter_rows())
    remark = "cells with DP below 0.80"
    yield PaperClaim("5.1", claim, "religion, sadness", ours, source=source, remark=remark)


_CORPUS_TABLES: Final = {"table_2": table_2, "table_3": table_3, "table_4": table_4}
EXHIBITS: Final = (*_CORPUS_TABLES, "table_5", *_OF_PREDICTIONS)


class AffectiveReplication:
    """A replication with its data located and its pairs loaded."""

    def __init__(self, request: ReplicationRequest) -> None:
        """Locate the data, in ``--data`` or else ``EVENHAND_DATA``."""
        variable = os.environ.get("EVENHAND_DATA")
        data = request.data or (Path(variable) if variable else None)
        if data is None:
            raise InputError(
                "no folder with the paper's published data was given",
                expected="--data DIR, or EVENHAND_DATA, with affective/eec.csv, bits, csp and semeval files; "
                "WikiEn, BookCorpus, WebText and C4-Val are optional",
                fix="see the how-to on probing for where they are published",
            )
        self.request, self.exhibits, self.data = request, request.exhibits, data
        self.suites, self.corpora = dict(_suites(data)), find_corpora(data)
        if not self.suites and not self.corpora.paths:
            raise InputError(
                f"{data} contains none of the paper's data",
                expected="affective/eec.csv, bits, csp or semeval files, or a corpus named WikiEn, "
                "BookCorpus, WebText or C4-Val",
                fix="check the path",
            )
        self.classifiers = dict(_classifiers(data, self.suites, request))
        """Source name to classifier spec."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
        return {
            "pairs": {name: suite.info.digest for name, suite in self.suites.items()},
            "classifiers": dict(self.classifiers),
            "corpora": {
                name: digest([_file_digest(path) for path in paths])
                for name, paths in self.corpora.paths.items()
            },
            "seed": self.request.seed,
        }

    def plan(self) -> Sequence[str]:
        """Corpora, pairs and classifiers."""
        return (
            f"corpora {', '.join(self.corpora.paths) or 'none available'}",
            f"pairs   {', '.join(self.suites) or 'none available'}",
            *(f"note    {name}: {note}" for name, suite in self.suites.items() for note in suite.info.notes),
            f"probes  {', '.join(self.classifiers)}",
        )

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits, as far as the data allows."""
        requested, runs_folder = self.exhibits, folder / RUNS
        exhibits: dict[str, Exhibit] = {}
        builders = {name: build for name, build in _CORPUS_TABLES.items() if name in requested}
        scans = self.corpora.scans(runs_folder) if builders else []
        if runs := [scan.run(progress) for scan in scans]:
            exhibits |= {name: build(runs) for name, build in builders.items()}
        if "table_5" in requested:
            exhibits["table_5"] = table_5(self.data)
        if set(_OF_PREDICTIONS) & set(requested) and self.suites:
            probes = {source: self._probe(source, runs_folder, progress) for source in self.classifiers}
            exhibits |= build_exhibits(probes, requested)
        return Replication(
            title=f"Affective bias, on {', '.join(self.classifiers)}",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in requested if name in exhibits),
            claims=tuple(claims(list(self.suites.values()))),
            remarks=(*_REMARKS, *self._describe_missing()),
            sources=tuple(self.classifiers),
        )

    def _probe(self, source: str, folder: Path, progress: Progress) -> Run:
        spec = self.classifiers[source]
        # The released predictions cover EEC only.
        names = ["eec"] if spec.endswith(RELEASED) else list(self.suites)
        return probe.prepare(
            spec,
            pairs=[f"{name}:{self.data}" for name in names],
            seed=self.request.seed,
            device=self.request.options["device"],
            batch=self.request.options["batch"],
            offline=self.request.options["offline"],
            out=folder / safe_file_name(source, "classifier"),
        ).run(progress)

    def _describe_missing(self) -> Iterator[str]:
        """Remarks on missing corpora, term lists and pairs."""
        paths, terms = self.corpora
        if missing := [name for name in (*NAMES, SEMEVAL) if name not in paths]:
            yield (
                f"Not available, and left out of Tables 2 to 4: {', '.join(missing)}. To count one, put a "
                "file or folder of that name in --data."
            )
        if terms is None and paths:
            yield "The paper's term lists (terms.json) are missing: with our own, no number will match."
        if missing := [printed for name, printed in CORPORA.items() if name not in self.suites]:
            yield f"Not available, and left out of Tables 6 to 9: {', '.join(missing)}."


def _suites(data: Path) -> Iterator[tuple[str, Suite]]:
    for name in CORPORA:
        try:
            yield name, registry.create_suite(name, {"name": str(data)})
        except FilesMissingError:
            # Each set of pairs is optional; the remarks list the missing ones.
            continue
        except InputError as error:
            raise InputError(
                f"the pairs {CORPORA[name]} are damaged: {error.problem}",
                expected=error.expected,
                fix="download the file again, or remove it to skip these pairs",
            ) from error


def _classifiers(
    data: Path, suites: Mapping[str, Suite], request: ReplicationRequest
) -> Iterator[tuple[str, str]]:
    for spec in request.models or DEFAULT_MODELS:
        yield spec if len(spec) < 60 else Path(spec).name, spec
    places = (data / RELEASED, data / "affective" / RELEASED)
    released = next((path for path in places if path.is_file()), None)
    if released is not None and "eec" in suites and not request.models:
        yield "BERT (released predictions)", f"replay:{released}"


def _file_digest(path: Path) -> Json:
    return file_digest(path) if path.is_file() else sorted(str(item.name) for item in path.glob("*"))
