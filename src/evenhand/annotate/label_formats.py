"""Answers in the formats of other tools: JSONL and CSV, Label Studio's tasks, Argilla's records.

Cells of a CSV that a spreadsheet would take for a formula are guarded with a quote.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5
from xml.sax.saxutils import quoteattr

import polars as pl

from evenhand.annotate.label_set import LabelSet, RatedQuestion
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.regular_files import read_text
from evenhand.stats.label_scales import number_or_none
from evenhand.store.atomic_writes import write_text
from evenhand.store.table_files import spreadsheet_csv, to_cell

CONTEXT_COLUMNS: Final = ("prompt", "group", "method", "text_id", "pair")
"""What goes along with a text."""
TEXT: Final = "text"


def group_by_item(collected: LabelSet) -> Iterator[tuple[dict[str, Json], list[dict[str, Json]]]]:
    """Every item's first row, and all of its rows."""
    for part in collected.rows.partition_by("item_id", maintain_order=True):
        rows = part.to_dicts()
        yield rows[0], rows


def item_context(row: Mapping[str, Json]) -> dict[str, Json]:
    """What is known of an item beside its text."""
    return {key: row[key] for key in CONTEXT_COLUMNS if row[key] is not None}


def is_numeric(question: RatedQuestion) -> bool:
    """Whether answers are stars: whole numbers from 1."""
    numbers = [number_or_none(label) for label in question.scale.labels]
    return all(number is not None and number >= 1 and number == int(number) for number in numbers)


def read_objects(value: Json) -> list[Mapping[str, Json]]:
    """The objects of a list; empty for anything else."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def to_text(value: Json) -> str | None:
    """A plain value as text."""
    return None if value is None or isinstance(value, dict | list) else str(value)


_PEOPLE: Final = "evenhand_annotators"
"""Metadata of a record: who stands behind its user ids, as JSON."""


def write_argilla(collected: LabelSet, path: Path) -> list[Path]:
    """Write the records."""
    numeric = {question.name: is_numeric(question) for question in collected.questions}
    records: list[Json] = []
    for first, answers in group_by_item(collected):
        responses: dict[str, list[Json]] = defaultdict(list)
        people: dict[str, str] = {}
        for row in answers:
            question, person = str(row["question"]), str(row["annotator"])
            people[_user(person)] = person
            label = str(row["label"])
            value: Json = int(float(label)) if numeric[question] else label
            responses[question].append({"value": value, "user_id": _user(person)})
        metadata = item_context(first) | {_PEOPLE: json.dumps(people, ensure_ascii=False)}
        records.append(
            {
                "id": first["item_id"],
                "fields": {"text": first["text"]},
                "metadata": metadata,
                "suggestions": {},
                "responses": dict(responses),
                "vectors": {},
            }
        )
    write_text(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")
    return [path]


def read_record(record: Mapping[str, Json]) -> Iterator[dict[str, str | None]]:
    """The ratings of a record of Argilla."""
    fields, metadata, responses = (record.get(key) for key in ("fields", "metadata", "responses"))
    fields = fields if isinstance(fields, dict) else {}
    metadata = metadata if isinstance(metadata, dict) else {}
    people = metadata.get(_PEOPLE)
    known = _people(people) if isinstance(people, str) else {}
    text = to_text(fields.get(TEXT)) or next((to_text(value) for value in fields.values() if value), None)
    for question, given in (responses if isinstance(responses, dict) else {}).items():
        for answer in read_objects(given):
            user = to_text(answer.get("user_id"))
            yield {
                "item_id": to_text(record.get("id")),
                "text": text,
                "annotator": to_text(known.get(user or "")) or user,
                "question": question,
                "label": to_text(answer.get("value")),
                "at": None,
                **{key: to_text(metadata.get(key)) for key in CONTEXT_COLUMNS},
            }


def _people(said: str) -> Mapping[str, Json]:
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _user(person: str) -> str:
    """Argilla knows people by UUIDs: the annotator's own, or one that follows from their id."""
    try:
        return str(UUID(person))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"evenhand:{person}"))


def write_label_studio(collected: LabelSet, path: Path) -> list[Path]:
    """Write the tasks, and the labelling configuration beside them."""
    numeric = {question.name: is_numeric(question) for question in collected.questions}
    tasks: list[Json] = []
    for number, (first, answers) in enumerate(group_by_item(collected), start=1):
        by_person: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for row in answers:
            by_person[str(row["annotator"])].append(
                {key: str(row[key]) for key in ("question", "label", "at")}
            )
        tasks.append(
            {
                "id": number,
                "data": {"text": first["text"], "item_id": first["item_id"], **item_context(first)},
                "annotations": [_annotation(person, given, numeric) for person, given in by_person.items()],
            }
        )
    write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    config = path.with_suffix(".xml")
    write_text(config, _labelling_config(collected.questions, numeric))
    return [path, config]


def _annotation(person: str, given: Sequence[Mapping[str, str]], numeric: Mapping[str, bool]) -> Json:
    # No completed_by: Label Studio refuses an import that names people it does not know.
    results: list[Json] = [
        {
            "id": f"{person}-{answer['question']}",
            "from_name": answer["question"],
            "to_name": TEXT,
            "type": "rating" if numeric[answer["question"]] else "choices",
            "value": {"rating": int(float(answer["label"]))}
            if numeric[answer["question"]]
            else {"choices": [answer["label"]]},
            "meta": {"annotator": [person]},
        }
        for answer in given
    ]
    times = [answer["at"] for answer in given if answer["at"] != "None"]
    made: dict[str, Json] = {"result": results, "was_cancelled": False, "ground_truth": False}
    return made | ({"created_at": max(times)} if times else {})


def _labelling_config(questions: Sequence[RatedQuestion], numeric: Mapping[str, bool]) -> str:
    lines = ["<View>", f'  <Text name="{TEXT}" value="$text"/>']
    for question in questions:
        name, labels = quoteattr(question.name), question.scale.labels
        lines.append(f"  <Header value={name}/>")
        if numeric[question.name]:
            most = max(int(float(label)) for label in labels)
            lines.append(f'  <Rating name={name} toName="{TEXT}" maxRating="{most}"/>')
            continue
        lines.append(f'  <Choices name={name} toName="{TEXT}" choice="single">')
        lines += [f"    <Choice value={quoteattr(label)}/>" for label in labels]
        lines.append("  </Choices>")
    return "\n".join([*lines, "</View>"]) + "\n"


def read_task(task: Mapping[str, Json]) -> Iterator[dict[str, str | None]]:
    """The ratings of a task of Label Studio; skipped ones and those of regions are left out."""
    data = task.get("data")
    data = data if isinstance(data, dict) else {}
    about = {key: to_text(data.get(key)) for key in CONTEXT_COLUMNS}
    item = to_text(data.get("item_id")) or to_text(data.get("id")) or to_text(task.get("id"))
    text = to_text(data.get(TEXT)) or next((to_text(value) for value in data.values() if value), None)
    for annotation in read_objects(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled"):
            continue
        for result in read_objects(annotation.get("result")):
            value = result.get("value")
            label = _read_choice(value) if isinstance(value, dict) else None
            if label is not None:
                yield {
                    "item_id": item,
                    "text": text,
                    "annotator": _person(annotation, result),
                    "question": to_text(result.get("from_name")) or "label",
                    "label": label,
                    "at": to_text(annotation.get("updated_at") or annotation.get("created_at")),
                    **about,
                }


def _read_choice(value: Mapping[str, Json]) -> str | None:
    """The one choice, rating or number of a result; spans and boxes are no labels of a text."""
    if "start" in value or "x" in value:
        return None
    choices = value.get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        return to_text(choices[0])
    return to_text(value.get("rating", value.get("number")))


def _person(annotation: Mapping[str, Json], result: Mapping[str, Json]) -> str | None:
    meta, by = result.get("meta"), annotation.get("completed_by")
    named = meta.get("annotator") if isinstance(meta, dict) else None
    if isinstance(named, list) and named:
        return to_text(named[0])
    if isinstance(by, dict):
        return to_text(by.get("id") or by.get("email"))
    return to_text(by) or to_text(annotation.get("created_username")) or to_text(annotation.get("id"))


FORMATS: Final = ("jsonl", "csv", "label-studio", "argilla")


def write_labels(collected: LabelSet, path: Path, kind: str) -> list[Path]:
    """The files written: the answers, and for Label Studio the labelling configuration beside them."""
    writers: Mapping[str, Callable[[LabelSet, Path], list[Path]]] = {
        "jsonl": _write_jsonl,
        "csv": _write_csv,
        "label-studio": write_label_studio,
        "argilla": write_argilla,
    }
    if kind not in writers:
        raise InputError(
            f"the format {kind!r} is not known", expected=", ".join(FORMATS), fix="name one with --format"
        )
    return writers[kind](collected, path)


def file_suffix(kind: str) -> str:
    """How the files of a format end."""
    return {"jsonl": ".jsonl", "csv": ".csv"}.get(kind, ".json")


def read_json(path: Path) -> pl.DataFrame:
    """The ratings in a JSON file of Label Studio or Argilla, a row each."""
    try:
        content = json.loads(read_text(path, encoding="utf-8-sig", most=1 << 30))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            expected="JSON of Label Studio or Argilla",
            fix="export it again",
        ) from error
    parts = content if isinstance(content, list) else [content]
    records = [part for part in parts if isinstance(part, dict)]
    if records and all("annotations" in part or "completions" in part for part in records):
        rows = [row for task in records for row in read_task(task)]
    elif records and all("responses" in part for part in records):
        rows = [row for record in records for row in read_record(record)]
    else:
        keys = ", ".join(list(records[0])[:8]) if records else type(content).__name__
        raise InputError(
            f"{path} holds {len(records)} objects of {keys or 'nothing'}",
            expected="Label Studio's JSON (data, annotations) or Argilla's (fields, responses)",
            fix="export in one of these formats, or as JSONL or CSV",
        )
    columns = ("item_id", "text", "annotator", "question", "label", "at", *CONTEXT_COLUMNS)
    sound = [{name: to_cell(value) for name, value in row.items()} for row in rows]
    table = pl.DataFrame(sound, schema=dict.fromkeys(columns, pl.String), orient="row")
    if table.is_empty():
        raise InputError(
            f"{path} holds {len(records)} texts and no label",
            expected="choices or ratings of whole texts",
            fix="export the annotations too",
        )
    # A column nobody fills would count as known.
    return table.select(name for name in table.columns if table[name].null_count() < table.height)


def _write_jsonl(collected: LabelSet, path: Path) -> list[Path]:
    write_text(path, collected.rows.write_ndjson())
    return [path]


def _write_csv(collected: LabelSet, path: Path) -> list[Path]:
    write_text(path, spreadsheet_csv(collected.rows))
    return [path]
