"""Argilla's records, as ``records.to_json`` writes them: ``id``, ``fields``, ``metadata``, ``responses``.

``responses`` holds for every question a list of ``value`` and ``user_id``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

from evenhand.annotate.collected import Collected
from evenhand.annotate.records import ABOUT, TEXT, about, by_item, is_numeric, objects, string
from evenhand.core.digests import Json
from evenhand.store.atomic import write_text

_PEOPLE: Final = "evenhand_annotators"
"""Metadata of a record: who stands behind its user ids, as JSON."""


def write_argilla(collected: Collected, path: Path) -> list[Path]:
    """Write the records."""
    numeric = {question.name: is_numeric(question) for question in collected.questions}
    records: list[Json] = []
    for first, answers in by_item(collected):
        responses: dict[str, list[Json]] = defaultdict(list)
        people: dict[str, str] = {}
        for row in answers:
            question, person = str(row["question"]), str(row["annotator"])
            people[_user(person)] = person
            label = str(row["label"])
            value: Json = int(float(label)) if numeric[question] else label
            responses[question].append({"value": value, "user_id": _user(person)})
        metadata = about(first) | {_PEOPLE: json.dumps(people, ensure_ascii=False)}
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


def of_record(record: Mapping[str, Json]) -> Iterator[dict[str, str | None]]:
    """The ratings of a record of Argilla."""
    fields, metadata, responses = (record.get(key) for key in ("fields", "metadata", "responses"))
    fields = fields if isinstance(fields, dict) else {}
    metadata = metadata if isinstance(metadata, dict) else {}
    people = metadata.get(_PEOPLE)
    known = _people(people) if isinstance(people, str) else {}
    text = string(fields.get(TEXT)) or next((string(value) for value in fields.values() if value), None)
    for question, given in (responses if isinstance(responses, dict) else {}).items():
        for answer in objects(given):
            user = string(answer.get("user_id"))
            yield {
                "item_id": string(record.get("id")),
                "text": text,
                "annotator": string(known.get(user or "")) or user,
                "question": question,
                "label": string(answer.get("value")),
                "at": None,
                **{key: string(metadata.get(key)) for key in ABOUT},
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
