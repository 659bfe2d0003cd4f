"""A server that is killed while people answer: what was acknowledged is there, once."""

from __future__ import annotations

import secrets
import signal
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from tests.annotate.study_parts import Reader, free_port, make_study, served

from evenhand.annotate.database import Database, answers
from evenhand.annotate.label_set import read_labels

PEOPLE = 4


def test_an_acknowledged_answer_survives_a_kill(tmp_path: Path, place: str | None) -> None:
    study = make_study(tmp_path / "s", items=20, annotators=PEOPLE, checks=False)
    with Database(study, place) as db:
        tokens = [one.token for one in db.create_invitations(PEOPLE)]
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_page_on_its_way_is_stored_whole_or_not_at_all(
    seed: int, tmp_path: Path, place: str | None
) -> None:
    """Whole pages without a pause, a kill at a seeded moment, and the last page sent once more."""
    study = make_study(tmp_path / "s", items=20, annotators=1, checks=False)
    with Database(study, place) as db:
        token = db.create_invitations(1)[0].token
    port, turn, label = free_port(), 0, ""
    with served(study, port, url=place) as process:
        reader = Reader(f"http://127.0.0.1:{port}", token)
        reader.open()
        moment = float(np.random.default_rng(seed).uniform(0.02, 0.5))
        threading.Timer(moment, process.send_signal, (signal.SIGKILL,)).start()
        with pytest.raises(httpx.TransportError):
            for turn in range(100_000):
                label = ("positive", "neutral", "negative")[turn % 3]
                reader.send(dict.fromkeys(reader.fields, label), mark=f"{turn:016x}")
        reader.close()
    stored = read_labels(study, place)
    assert stored.height in (0, len(reader.fields))
    assert stored["label"].n_unique() <= 1
    with served(study, port, url=place):
        again = Reader(f"http://127.0.0.1:{port}", token)
        again.open()
        sent = again.send(dict.fromkeys(reader.fields, label), mark=f"{turn:016x}")
        again.close()
    assert sent.status_code == 200
    assert read_labels(study, place)["label"].to_list() == [label] * len(reader.fields)
    with Database(study, place) as db:
        once = sa.select(sa.func.count()).where(answers.c.study == study.id, answers.c.mark == f"{turn:016x}")
        assert db.read(lambda connection: connection.execute(once).scalar()) == len(reader.fields)
