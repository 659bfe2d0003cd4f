"""Samples of lm-evaluation-harness: what ``lm_eval --log_samples`` writes as ``samples_*.jsonl``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.logs.log_records import (
    CLUSTER,
    FAILURE,
    ID,
    MARK_KEY,
    PROMPT,
    TEXT,
    Row,
    ToolLog,
    cut_answer,
    flatten_value,
    read_task_baselines,
    read_task_columns,
    read_task_mentions,
)
from evenhand.store.table_files import read_json_lines, text_table, to_cell

_KEYS = frozenset({"doc_id", "doc", "arguments", "resps"})
_DOC = "doc"

Sample = Mapping[str, Json]


def is_lm_eval_sample(row: Mapping[str, Json]) -> bool:
    """Whether an object is a sample of lm-eval."""
    return row.keys() >= _KEYS


def read_samples(path: Path) -> ToolLog:
    """The answers of a file of samples, one row an answer: answers to one document are one cluster.

    A document is logged once for every filter; its answers are taken once, and what each filter made of them
    stands in the column ``filtered.FILTER``. Fields of the document are columns such as ``doc.race``. An
    answer that is null, as a host gives where it refuses, is a row without a text.
    """
    documents: dict[str, list[Row]] = {}
    for number, sample in read_json_lines(path):
        if not is_lm_eval_sample(sample):
            raise _no_sample(path, number)
        key = to_cell(sample["doc_id"]) or ""
        rows = _rows(sample, key)
        known = documents.setdefault(key, rows)
        if not _same(rows, known):
            raise _other_answers(path, number, key)
        _add_filtered(known, sample)
    if not any(documents.values()):
        raise InputError(
            f"{path} holds log-probabilities and no texts",
            expected="samples of a task that generates (output_type: generate_until)",
            fix="name the samples of such a task",
        )
    table = text_table((row for rows in documents.values() for row in rows), path)
    ours = read_task_columns(table, _DOC)
    return ToolLog(
        tool="lm-eval",
        summary=f"{table.height:,} answers to {len(documents):,} documents of lm-eval",
        table=table,
        groups=ours,
        baselines=read_task_baselines(table, _DOC),
        mentions=read_task_mentions(table, _DOC),
        join_prompt=bool(ours),
    )


def _rows(sample: Sample, key: str) -> list[Row]:
    """One row for every answer of a document."""
    doc = sample["doc"]
    mark = _mark(doc)
    shared: Row = {
        # As the suite has it: what was asked may be wrapped in a chat template.
        PROMPT: to_cell(mark.get("prompt")) or _prompt(sample),
        CLUSTER: to_cell(mark.get("cluster")) or key,
        "doc_id": key,
        "target": to_cell(sample.get("target")),
        **flatten_value(_DOC, doc),
    }
    return [
        {
            TEXT: None if text is None else to_cell(cut_answer(text, mark)),
            ID: f"{key}:{number}",
            FAILURE: "no_answer" if text is None else None,
            **shared,
        }
        for number, text in enumerate(_answers(sample))
    ]


def _same(rows: Sequence[Row], known: Sequence[Row]) -> bool:
    """Whether what is known of a document says the same; what filters made of it may stand there too."""
    return len(rows) == len(known) and all(
        row.items() <= old.items() for row, old in zip(rows, known, strict=True)
    )


def _mark(doc: Json) -> Mapping[str, Json]:
    """What a task made from one of our suites says of a prompt."""
    mark = doc.get(MARK_KEY) if isinstance(doc, Mapping) else None
    return mark if isinstance(mark, Mapping) else {}


def _answers(sample: Sample) -> Iterator[str | None]:
    """The texts a model gave, None where it gave none; nothing where it was asked for log-probabilities."""
    requests = _arguments(sample["arguments"])
    for request, answers in zip(requests, _list(sample["resps"]), strict=False):
        # A request to generate comes with its settings; rolling log-probabilities come as text, without any.
        if len(request) > 1 and isinstance(request[1], Mapping):
            yield from (answer for answer in _list(answers) if answer is None or isinstance(answer, str))


def _prompt(sample: Sample) -> str | None:
    requests = _arguments(sample["arguments"])
    return to_cell(requests[0][0]) if requests and requests[0] else None


def _arguments(value: Json) -> list[Sequence[Json]]:
    """What each request was given, by place: a list of lists, or ``gen_args_0: {arg_0: ..}`` since 0.4.3."""
    requests = value.values() if isinstance(value, Mapping) else _list(value)
    return [tuple(one.values()) if isinstance(one, Mapping) else _list(one) for one in requests]


def _add_filtered(rows: Sequence[Row], sample: Sample) -> None:
    filtered = _list(sample.get("filtered_resps"))
    texts = _list(filtered[0]) if filtered and isinstance(filtered[0], list) else filtered
    name = f"filtered.{sample.get('filter', 'none')}"
    for number, row in enumerate(rows):
        # A filter that keeps one answer of several says nothing about the others.
        row[name] = to_cell(texts[number]) if number < len(texts) else None


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def _no_sample(path: Path, number: int) -> InputError:
    return InputError(
        f"{path} line {number} is not a sample of lm-eval, as the lines before it are",
        expected=f"the fields {', '.join(sorted(_KEYS))} in every line",
        fix="repair that line, or take the file as lm_eval wrote it",
    )


def _other_answers(path: Path, number: int, key: str) -> InputError:
    return InputError(
        f"{path} line {number} has another document {key!r}, or other answers to it, than a line before it",
        expected="the samples of one task and one model",
        fix="score each file of samples by itself, and put the runs side by side with `evenhand compare`",
    )
