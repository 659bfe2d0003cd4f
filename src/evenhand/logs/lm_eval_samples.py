"""Samples of lm-evaluation-harness: what ``lm_eval --log_samples`` writes as ``samples_*.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.logs.log_records import Row, ToolLog, answer_rows, read_list, read_tool_log
from evenhand.store.table_files import read_json_lines, to_cell

_KEYS = frozenset({"doc_id", "doc", "arguments", "resps"})
_DOC = "doc"

Sample = Mapping[str, Json]


def is_lm_eval_sample(row: Mapping[str, Json]) -> bool:
    """Whether an object is a sample of lm-eval."""
    return row.keys() >= _KEYS


def read_samples(path: Path) -> ToolLog:
    """The answers of a file of samples, one row an answer: answers to one document are one cluster.

    A document is logged once for every filter; its answers are taken once, and what each filter made of them
    is in the column ``filtered.FILTER``. Fields of the document are columns such as ``doc.race``. An answer
    that is null, as a host gives where it refuses, is a row without a text.
    """
    documents: dict[str, list[Row]] = {}
    for number, sample in read_json_lines(path):
        if not is_lm_eval_sample(sample):
            raise InputError(
                f"{path} line {number} is not a sample of lm-eval, as the lines before it are",
                expected=f"the fields {', '.join(sorted(_KEYS))} in every line",
                fix="repair that line, or take the file as lm_eval wrote it",
            )
        key = to_cell(sample["doc_id"]) or ""
        rows = _rows(sample, key)
        known = documents.setdefault(key, rows)
        # The known rows may hold what other filters made of the answers, too.
        if len(rows) != len(known) or any(
            not row.items() <= old.items() for row, old in zip(rows, known, strict=True)
        ):
            raise InputError(
                f"{path} line {number} has another document {key!r}, or other answers to it, than a line "
                "before it",
                expected="the samples of one task and one model",
                fix="score each file of samples on its own, and compare the runs with `evenhand compare`",
            )
        filtered = read_list(sample.get("filtered_resps"))
        texts = read_list(filtered[0]) if filtered and isinstance(filtered[0], list) else filtered
        for place, row in enumerate(known):
            # A filter that keeps one answer of several says nothing about the others.
            text = to_cell(texts[place]) if place < len(texts) else None
            row[f"filtered.{sample.get('filter', 'none')}"] = text
    if not any(documents.values()):
        raise InputError(
            f"{path} holds log-probabilities and no texts",
            expected="samples of a task that generates (output_type: generate_until)",
            fix="name the samples of such a task",
        )
    rows = [row for rows in documents.values() for row in rows]
    summary = f"{len(rows):,} answers to {len(documents):,} documents of lm-eval"
    return read_tool_log(rows, path, tool="lm-eval", prefix=_DOC, summary=summary)


def _rows(sample: Sample, key: str) -> list[Row]:
    """One row for every answer of a document."""
    # What each request was given, by place: a list of lists, or ``gen_args_0: {arg_0: ..}`` since 0.4.3.
    arguments = sample["arguments"]
    listed = arguments.values() if isinstance(arguments, Mapping) else read_list(arguments)
    requests = [tuple(one.values()) if isinstance(one, Mapping) else read_list(one) for one in listed]
    texts = [
        text
        for request, answers in zip(requests, read_list(sample["resps"]), strict=False)
        # A request to generate comes with its settings; rolling log-probabilities come as text, without any.
        if len(request) > 1 and isinstance(request[1], Mapping)
        for text in read_list(answers)
        if text is None or isinstance(text, str)
    ]
    return answer_rows(
        ((f"{key}:{at}", text, "no_answer" if text is None else None) for at, text in enumerate(texts)),
        sample["doc"],
        prefix=_DOC,
        prompt=to_cell(requests[0][0]) if requests and requests[0] else None,
        cluster=key,
        cells={"doc_id": key, "target": to_cell(sample.get("target"))},
    )
