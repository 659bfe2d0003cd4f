"""Samples of lm-evaluation-harness: the ``samples_*.jsonl`` files of ``lm_eval --log_samples``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.logs.log_records import CLUSTER, PROMPT, Row, ToolLog, answer_rows, read_list, read_tool_log
from evenhand.store.table_files import read_json_lines, to_cell

_KEYS = frozenset({"doc_id", "doc", "arguments", "resps"})
_DOC = "doc"

Sample = Mapping[str, Json]


def is_lm_eval_sample(row: Mapping[str, Json]) -> bool:
    """Whether an object is an lm-eval sample."""
    return row.keys() >= _KEYS


def read_samples(path: Path) -> ToolLog:
    """The answers in a samples file, one row per answer: answers to the same document form a cluster.

    A document is logged once per filter; its answers are read once, and the output of each filter
    is in the column ``filtered.FILTER``. Document fields become columns such as ``doc.race``. A null answer,
    which hosts give when they refuse, is a row without a text.
    """
    documents: dict[str, list[Row]] = {}
    for number, sample in read_json_lines(path):
        if not is_lm_eval_sample(sample):
            raise InputError(
                f"{path} line {number} is not a sample of lm-eval, as the lines before it are",
                expected=f"the fields {', '.join(sorted(_KEYS))} in every line",
                fix="repair that line, or use the file as lm_eval wrote it",
            )
        key = to_cell(sample["doc_id"]) or ""
        rows = _rows(sample, key)
        known = documents.setdefault(key, rows)
        # Rows read before may hold the output of other filters, too.
        if len(rows) != len(known) or any(
            not row.items() <= old.items() for row, old in zip(rows, known, strict=True)
        ):
            raise InputError(
                f"{path} line {number} repeats document {key!r} with other content or answers than a line "
                "before it",
                expected="the samples of one task and one model",
                fix="score each file of samples on its own, and compare the runs with `evenhand compare`",
            )
        filtered = read_list(sample.get("filtered_resps"))
        texts = read_list(filtered[0]) if filtered and isinstance(filtered[0], list) else filtered
        for place, row in enumerate(known):
            # A filter that keeps only some of the answers says nothing about the others.
            text = to_cell(texts[place]) if place < len(texts) else None
            row[f"filtered.{sample.get('filter', 'none')}"] = text
    if not any(documents.values()):
        raise InputError(
            f"{path} holds log-probabilities instead of texts",
            expected="samples of a task that generates (output_type: generate_until)",
            fix="use the samples of such a task",
        )
    rows = [row for rows in documents.values() for row in rows]
    summary = f"{len(rows):,} answers to {len(documents):,} documents of lm-eval"
    return read_tool_log(rows, path, tool="lm-eval", prefix=_DOC, summary=summary)


def _rows(sample: Sample, key: str) -> list[Row]:
    """One row for every answer of a document."""
    # The arguments of each request: a list of lists, or ``gen_args_0: {arg_0: ..}`` since 0.4.3.
    arguments = sample["arguments"]
    listed = arguments.values() if isinstance(arguments, Mapping) else read_list(arguments)
    requests = [tuple(one.values()) if isinstance(one, Mapping) else read_list(one) for one in listed]
    texts = [
        text
        for request, answers in zip(requests, read_list(sample["resps"]), strict=False)
        # A generation request has settings; rolling log-probabilities have only a text.
        if len(request) > 1 and isinstance(request[1], Mapping)
        for text in read_list(answers)
        if text is None or isinstance(text, str)
    ]
    answers = ((f"{key}:{at}", text, "no_answer" if text is None else None) for at, text in enumerate(texts))
    prompt = to_cell(requests[0][0]) if requests and requests[0] else None
    cells: Row = {PROMPT: prompt, CLUSTER: key, "doc_id": key, "target": to_cell(sample.get("target"))}
    return answer_rows(answers, sample["doc"], prefix=_DOC, cells=cells)
