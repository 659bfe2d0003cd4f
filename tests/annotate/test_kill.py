"""A server that is killed while people answer: what was acknowledged is there, once."""

from __future__ import annotations

import secrets
import signal
import threading
from pathlib import Path

import httpx
from tests.annotate.study_parts import Reader, free_port, make_study, served

from evenhand.annotate import people
from evenhand.annotate.database import Database
from evenhand.annotate.labels import read_labels

PEOPLE = 4


def test_an_acknowledged_answer_survives_a_kill(tmp_path: Path, place: str | None) -> None:
    study = make_study(tmp_path / "s", items=20, annotators=PEOPLE, checks=False)
    with Database(study, place) as db:
        tokens = [one.token for one in people.invite(db, PEOPLE)]
    port = free_port()
    acknowledged: dict[tuple[str, str], str] = {}
    on_the_way: dict[tuple[str, str], str] = {}
    enough = threading.Event()

    def answer(number: int) -> None:
        reader = Reader(f"http://127.0.0.1:{port}", tokens[number])
        try:
            reader.open()
            for turn in range(100_000):
                field = reader.fields[turn % len(reader.fields)]
                label = ("positive", "neutral", "negative")[(turn // len(reader.fields) + number) % 3]
                key = (f"a{number + 1}", field.split(".")[1])
                on_the_way[key] = label
                if reader.send({field: label}, mark=secrets.token_hex(8)).status_code == 200:
                    acknowledged[key] = label
                del on_the_way[key]
                if len(acknowledged) >= 25:
                    enough.set()
        except httpx.TransportError:
            return
        finally:
            reader.close()

    with served(study, port, url=place) as process:
        crowd = [threading.Thread(target=answer, args=(number,)) for number in range(PEOPLE)]
        for one in crowd:
            one.start()
        assert enough.wait(60)
        process.send_signal(signal.SIGKILL)
        for one in crowd:
            one.join(60)
    table = read_labels(study, place)
    stored = {(row["annotator"], row["item_id"]): row["label"] for row in table.iter_rows(named=True)}
    assert table.height == len(stored)
    assert set(stored) <= set(acknowledged) | set(on_the_way)
    assert len(acknowledged) >= 25
    for key, label in acknowledged.items():
        # The last one acknowledged, or the one that was on its way when the server died.
        assert stored[key] in (label, on_the_way.get(key))
    with served(study, port, url=place):
        reader = Reader(f"http://127.0.0.1:{port}", tokens[0])
        shown = reader.given(reader.open())
        reader.close()
    mine = {item: label for (who, item), label in stored.items() if who == "a1"}
    assert shown == len(mine)
