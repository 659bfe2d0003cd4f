"""Label Studio's tasks: ``data``, and ``annotations`` whose ``result`` items are the answers.

A result names its question (``from_name``), what it is about (``to_name``), its ``type`` and its ``value``:
``choices`` or ``rating``. Who answered is ``completed_by``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from evenhand.annotate.collected import Collected
from evenhand.annotate.rating_tables import Question
from evenhand.annotate.records import ABOUT, TEXT, about, by_item, is_numeric, objects, string
from evenhand.core.digests import Json
from evenhand.store.atomic import write_text


def write_label_studio(collected: Collected, path: Path) -> list[Path]:
    """Write the tasks, and the labelling configuration beside them."""
    numeric = {question.name: is_numeric(question) for question in collected.questions}
    tasks: list[Json] = []
    for number, (first, answers) in enumerate(by_item(collected), start=1):
        by_person: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for row in answers:
            by_person[str(row["annotator"])].append(
                {key: str(row[key]) for key in ("question", "label", "at")}
            )
        tasks.append(
            {
                "id": number,
                "data": {"text": first["text"], "item_id": first["item_id"], **about(first)},
                "annotations": [_annotation(person, given, numeric) for person, given in by_person.items()],
            }
        )
    write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    config = path.with_suffix(".xml")
    write_text(config, _labelling(collected.questions, numeric))
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


def _labelling(questions: Sequence[Question], numeric: Mapping[str, bool]) -> str:
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


def of_task(task: Mapping[str, Json]) -> Iterator[dict[str, str | None]]:
    """The ratings of a task of Label Studio; skipped ones and those of regions are left out."""
    data = task.get("data")
    data = data if isinstance(data, dict) else {}
    about = {key: string(data.get(key)) for key in ABOUT}
    item = string(data.get("item_id")) or string(data.get("id")) or string(task.get("id"))
    text = string(data.get(TEXT)) or next((string(value) for value in data.values() if value), None)
    for annotation in objects(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled"):
            continue
        for result in objects(annotation.get("result")):
            value = result.get("value")
            label = _chosen(value) if isinstance(value, dict) else None
            if label is not None:
                yield {
                    "item_id": item,
                    "text": text,
                    "annotator": _person(annotation, result),
                    "question": string(result.get("from_name")) or "label",
                    "label": label,
                    "at": string(annotation.get("updated_at") or annotation.get("created_at")),
                    **about,
                }


def _chosen(value: Mapping[str, Json]) -> str | None:
    """The one choice, rating or number of a result; spans and boxes are no labels of a text."""
    if "start" in value or "x" in value:
        return None
    choices = value.get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        return string(choices[0])
    return string(value.get("rating", value.get("number")))


def _person(annotation: Mapping[str, Json], result: Mapping[str, Json]) -> str | None:
    meta, by = result.get("meta"), annotation.get("completed_by")
    named = meta.get("annotator") if isinstance(meta, dict) else None
    if isinstance(named, list) and named:
        return string(named[0])
    if isinstance(by, dict):
        return string(by.get("id") or by.get("email"))
    return string(by) or string(annotation.get("created_username")) or string(annotation.get("id"))
