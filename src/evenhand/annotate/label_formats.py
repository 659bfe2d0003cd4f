"""``export_labels`` and ``import_labels``: JSONL, CSV, Label Studio tasks and Argilla records.

CSV cells that a spreadsheet would treat as a formula are escaped with a quote.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final, Unpack
from uuid import NAMESPACE_URL, UUID, uuid5
from xml.sax.saxutils import quoteattr

import polars as pl

from evenhand.annotate.agreement import describe_questions
from evenhand.annotate.label_set import LabelSet, read_label_set
from evenhand.annotate.options import ExportOptions, ImportOptions
from evenhand.audits.run_setup import PreparedJob
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.regular_files import read_text
from evenhand.report.manifest import read_mapping, read_objects, read_value
from evenhand.stats.label_scales import number_or_none
from evenhand.store.atomic_writes import write_text
from evenhand.store.table_files import spreadsheet_csv, to_cell

CONTEXT_COLUMNS: Final = ("prompt", "group", "method", "text_id", "pair")
"""Columns exported along with each text."""
TEXT: Final = "text"
_PEOPLE: Final = "evenhand_annotators"
"""Metadata key of a record: user ids mapped to annotators, as JSON."""
Object = Mapping[str, Json]


@checks_options
def export_labels(source: Path | str, **options: Unpack[ExportOptions]) -> list[Path]:
    """Write a study's answers as JSONL, CSV, or JSON for Label Studio or Argilla; return the files."""
    return prepare(source, verb="export", **options).run()


@checks_options
def import_labels(source: Path | str, **options: Unpack[ImportOptions]) -> list[Path]:
    """Convert answers from Label Studio, Argilla or any table to our JSONL; return the file.

    ``agreement``, ``validate`` and ``train`` also read these formats directly; importing checks and stores.
    """
    return prepare(source, verb="import", **options).run()


@checks_options
def prepare(
    source: Path | str, *, verb: str = "export", **options: Unpack[ExportOptions]
) -> PreparedJob[list[Path]]:
    """Read and check the answers, so that ``plan`` can be shown before ``run``."""
    labels = read_label_set(source, options)
    path = Path(options["out"] or f"{labels.name}-labels{FORMATS[options['format']][0]}")
    if path.is_dir():
        raise InputError(f"{path} is a folder", expected="a file to write", fix="name a file with --out")
    if path.exists() and path.resolve() == labels.source.resolve():
        raise InputError(
            f"{path} is the input: it would be overwritten", expected="another file", fix="set it with --out"
        )
    lines = (*describe_questions(labels), f"writes   {path} ({options['format']})")
    return PreparedJob(
        f"{verb} {labels.name}", lines, lambda _: write_labels(labels, options["format"], path)
    )


def write_labels(labels: LabelSet, format_name: str, path: Path) -> list[Path]:
    """Write the answers, plus the labelling configuration for Label Studio."""
    texts = {path: FORMATS[format_name][1](labels)}
    if format_name == "label-studio":
        texts[path.with_suffix(".xml")] = _labelling_config(labels)
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def _context(row: Object) -> dict[str, Json]:
    return {key: row[key] for key in CONTEXT_COLUMNS if row[key] is not None}


def _star_questions(labels: LabelSet) -> set[str]:
    """The questions with star ratings: integers from 1."""
    stars = set()
    for question in labels.questions:
        numbers = [number_or_none(label) for label in question.labels]
        if all(number is not None and number >= 1 and number == int(number) for number in numbers):
            stars.add(question.name)
    return stars


def _argilla_records(labels: LabelSet) -> str:
    stars, records = _star_questions(labels), list[Json]()
    for part in labels.rows.partition_by("item_id", maintain_order=True):
        first, responses = part.row(0, named=True), defaultdict[str, list[Json]](list)
        people = {_user(person): person for person in part["annotator"]}
        for question, person, label in part.select("question", "annotator", "label").iter_rows():
            value = int(float(label)) if question in stars else label
            responses[question].append({"value": value, "user_id": _user(person)})
        records.append(
            {
                "id": first["item_id"],
                "fields": {"text": first["text"]},
                "metadata": _context(first) | {_PEOPLE: json.dumps(people, ensure_ascii=False)},
                "suggestions": {},
                "responses": responses,
                "vectors": {},
            }
        )
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def _user(person: str) -> str:
    """The UUID of a person for Argilla: their id if it is one, else a UUID derived from it."""
    try:
        return str(UUID(person))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"evenhand:{person}"))


def _label_studio_tasks(labels: LabelSet) -> str:
    stars, tasks = _star_questions(labels), list[Json]()
    for number, part in enumerate(labels.rows.partition_by("item_id", maintain_order=True), start=1):
        # No completed_by: Label Studio rejects imports with unknown users.
        annotations: list[Json] = []
        for answers in part.partition_by("annotator", maintain_order=True):
            results: list[Json] = [
                {
                    "id": f"{person}-{question}",
                    "from_name": question,
                    "to_name": TEXT,
                    "type": "rating" if question in stars else "choices",
                    "value": {"rating": int(float(label))} if question in stars else {"choices": [label]},
                    "meta": {"annotator": [person]},
                }
                for person, question, label in answers.select("annotator", "question", "label").iter_rows()
            ]
            last = answers["at"].max()
            created: dict[str, Json] = {"created_at": str(last)} if last else {}
            annotations.append({"result": results, "was_cancelled": False, "ground_truth": False, **created})
        first = part.row(0, named=True)
        data = {"text": first["text"], "item_id": first["item_id"], **_context(first)}
        tasks.append({"id": number, "data": data, "annotations": annotations})
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def _labelling_config(labels: LabelSet) -> str:
    stars, lines = _star_questions(labels), ["<View>", f'  <Text name="{TEXT}" value="$text"/>']
    for question in labels.questions:
        name = quoteattr(question.name)
        lines.append(f"  <Header value={name}/>")
        if question.name in stars:
            highest = max(int(float(label)) for label in question.labels)
            lines.append(f'  <Rating name={name} toName="{TEXT}" maxRating="{highest}"/>')
        else:
            lines.append(f'  <Choices name={name} toName="{TEXT}" choice="single">')
            lines += [f"    <Choice value={quoteattr(label)}/>" for label in question.labels]
            lines.append("  </Choices>")
    return "\n".join([*lines, "</View>"]) + "\n"


FORMATS: Final[Mapping[str, tuple[str, Callable[[LabelSet], str]]]] = {
    "jsonl": (".jsonl", lambda labels: labels.rows.write_ndjson()),
    "csv": (".csv", lambda labels: spreadsheet_csv(labels.rows)),
    "label-studio": (".json", _label_studio_tasks),
    "argilla": (".json", _argilla_records),
}
"""For each format the suffix of its file, and what writes it."""


def read_json(path: Path) -> pl.DataFrame:
    """Read a JSON file from Label Studio or Argilla, one row per rating."""
    try:
        content = json.loads(read_text(path, encoding="utf-8-sig", most=1 << 30))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            expected="JSON from Label Studio or Argilla",
            fix="export it again",
        ) from error
    records = read_objects({"records": content if isinstance(content, list) else [content]}, "records")
    if records and all("annotations" in part or "completions" in part for part in records):
        rows = list(chain.from_iterable(map(_read_task, records)))
    elif records and all("responses" in part for part in records):
        rows = list(chain.from_iterable(map(_read_record, records)))
    else:
        keys = ", ".join(list(records[0])[:8]) if records else type(content).__name__
        raise InputError(
            f"{path} has {len(records)} objects with the keys {keys or '(none)'}",
            expected="Label Studio's JSON (data, annotations) or Argilla's (fields, responses)",
            fix="export in one of these formats, or as JSONL or CSV",
        )
    columns = ("item_id", "text", "annotator", "question", "label", "at", *CONTEXT_COLUMNS)
    sound = [{name: to_cell(value) for name, value in row.items()} for row in rows]
    table = pl.DataFrame(sound, schema=dict.fromkeys(columns, pl.String), orient="row")
    if table.is_empty():
        raise InputError(
            f"{path} has {len(records)} texts and no label",
            expected="choices or ratings of whole texts",
            fix="export the annotations too",
        )
    # An empty column would count as known.
    return table.select(name for name in table.columns if table[name].null_count() < table.height)


def _text(value: Json) -> str | None:
    """A scalar as text."""
    return None if value is None or isinstance(value, dict | list) else str(value)


def _first_text(fields: Object) -> str | None:
    """The field ``text``, or the first non-empty field."""
    return _text(fields.get(TEXT)) or next((_text(value) for value in fields.values() if value), None)


def _read_record(record: Object) -> Iterator[dict[str, str | None]]:
    """The ratings of an Argilla record."""
    metadata, responses = read_mapping(record, "metadata"), read_mapping(record, "responses")
    people: dict[str, Json] = {}
    with suppress(ValueError, RecursionError):
        people = {"names": json.loads(_text(metadata.get(_PEOPLE)) or "null")}
    for question in responses:
        for answer in read_objects(responses, question):
            user = _text(answer.get("user_id"))
            yield {
                "item_id": _text(record.get("id")),
                "text": _first_text(read_mapping(record, "fields")),
                "annotator": _text(read_value(people, "names", user or "")) or user,
                "question": question,
                "label": _text(answer.get("value")),
                **{key: _text(metadata.get(key)) for key in CONTEXT_COLUMNS},
            }


def _read_task(task: Object) -> Iterator[dict[str, str | None]]:
    """The ratings of a Label Studio task, without skipped ones and those of regions."""
    data = read_mapping(task, "data")
    for annotation in read_objects(task, "annotations" if task.get("annotations") else "completions"):
        for result in read_objects(annotation, "result"):
            label = _read_choice(read_mapping(result, "value"))
            if label is not None and not annotation.get("was_cancelled"):
                yield {
                    "item_id": _text(data.get("item_id")) or _text(data.get("id")) or _text(task.get("id")),
                    "text": _first_text(data),
                    "annotator": _person(annotation, result),
                    "question": _text(result.get("from_name")) or "label",
                    "label": label,
                    "at": _text(annotation.get("updated_at") or annotation.get("created_at")),
                    **{key: _text(data.get(key)) for key in CONTEXT_COLUMNS},
                }


def _read_choice(value: Object) -> str | None:
    """The single choice, rating or number of a result; spans and boxes do not label a text."""
    if "start" in value or "x" in value:
        return None
    choices = value.get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        return _text(choices[0])
    return _text(value.get("rating", value.get("number")))


def _person(annotation: Object, result: Object) -> str | None:
    named, by = read_value(result, "meta", "annotator"), annotation.get("completed_by")
    if isinstance(named, list) and named:
        return _text(named[0])
    if isinstance(by, dict):
        return _text(by.get("id") or by.get("email"))
    return _text(by) or _text(annotation.get("created_username")) or _text(annotation.get("id"))
