"""Where answers are kept: the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.annotate.study_parts import make_study

from evenhand.annotate.annotation_service import AnnotationService
from evenhand.annotate.database import (
    CHANGES,
    VARIABLE,
    Database,
    DatabaseError,
    Person,
    SubmittedAnswer,
    answers,
    utc_now,
)
from evenhand.annotate.label_set import read_labels
from evenhand.annotate.study import STUDY, Study, read_study
from evenhand.core.errors import InputError


def ids(study: Study) -> list[str]:
    return study.items().filter(~study.items()["is_check"])["item_id"].to_list()


def rows(db: Database) -> int:
    query = sa.select(sa.func.count()).where(answers.c.study == db.study.id)
    return db.read(lambda connection: int(connection.execute(query).scalar_one()))


def test_the_last_answer_counts(study: Study, place: str | None) -> None:
    item = ids(study)[0]
    with Database(study, place) as db:
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "positive")], mark="1" * 16)
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "negative")], mark="2" * 16)
        db.save_answers("a2", [SubmittedAnswer(item, "sentiment", "neutral")], mark="1" * 16)
        assert [(one.annotator, one.label) for one in db.latest_answers()] == [
            ("a1", "negative"),
            ("a2", "neutral"),
        ]
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", None)], mark="3" * 16)
        assert [one.annotator for one in db.latest_answers()] == ["a2"]
        assert db.latest_answers("a1") == []
        assert rows(db) == 4  # nothing was overwritten


def test_a_submission_sent_twice_is_stored_once(study: Study, place: str | None) -> None:
    first, second = ids(study)[:2]
    with Database(study, place) as db:
        batch = [
            SubmittedAnswer(first, "sentiment", "positive"),
            SubmittedAnswer(second, "sentiment", "neutral"),
        ]
        db.save_answers("a1", batch, mark="1" * 16)
        db.save_answers("a1", [SubmittedAnswer(first, "sentiment", "negative")], mark="2" * 16)
        # The reply to the first was lost and it comes again: the change in between stands.
        db.save_answers("a1", batch, mark="1" * 16)
        assert rows(db) == 3
        assert {one.item_id: one.label for one in db.latest_answers()} == {
            first: "negative",
            second: "neutral",
        }


def test_without_a_mark_only_changes_are_stored(study: Study, place: str | None) -> None:
    item = ids(study)[0]
    with Database(study, place) as db:
        for label in ("positive", "positive", "negative", "positive"):
            db.save_answers("a1", [SubmittedAnswer(item, "sentiment", label)])
        assert rows(db) == 3
        assert db.latest_answers()[0].label == "positive"


def test_a_history_of_changes_has_an_end(study: Study, place: str | None) -> None:
    first, second = ids(study)[:2]
    with Database(study, place) as db:
        db.save_answers("a1", [SubmittedAnswer(second, "sentiment", "neutral")])
        db.save_answers("a2", [SubmittedAnswer(first, "sentiment", "neutral")])
        for number in range(3 * CHANGES):
            label = "positive" if number % 2 else "negative"
            db.save_answers("a1", [SubmittedAnswer(first, "sentiment", label)], mark=f"{number:016x}")
        # The last change is not refused: it counts.
        assert db.latest_answers("a1")[-1].label == "positive"
        assert rows(db) == CHANGES + 2
        # The last submission is still one that was stored, should it come again.
        db.save_answers(
            "a1", [SubmittedAnswer(first, "sentiment", "negative")], mark=f"{3 * CHANGES - 1:016x}"
        )
        assert db.latest_answers("a1")[-1].label == "positive"


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.glob("*.db*")}


@pytest.mark.skipif(os.name != "posix", reason="modes of files as POSIX has them")
def test_only_the_owner_can_read_answers(study: Study, tmp_path: Path) -> None:
    private = {"labels.db": 0o600, "labels.db-wal": 0o600, "labels.db-shm": 0o600}
    with Database(study) as db:
        db.create_invitations(1)
        assert _modes(study.folder) == private
    # One of an earlier version, with what a killed server left beside it.
    with Database(study) as db:
        db.create_invitations(1)
        for path in study.folder.glob("labels.db*"):
            path.chmod(0o644)
        with Database(study) as again:
            assert list(again.read_links()) == ["a1", "a2"]
            assert _modes(study.folder) == private
    with Database(study, f"sqlite:///{tmp_path / 'own.db'}") as db:
        db.create_invitations(1)
        assert set(_modes(tmp_path).values()) == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="modes of files as POSIX has them")
def test_a_folder_named_as_a_database_is_left_as_it_is(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    with pytest.raises(DatabaseError), Database(study, f"sqlite:///{folder}", patience=0.1):
        pass
    assert folder.stat().st_mode & 0o777 == 0o755


def test_labels_as_a_table(study: Study, place: str | None) -> None:
    first, second = sorted(ids(study)[:2])
    with Database(study, place) as db:
        db.save_answers(
            "a2",
            [
                SubmittedAnswer(first, "sentiment", "negative"),
                SubmittedAnswer(second, "sentiment", "neutral"),
            ],
        )
        db.save_answers("a1", [SubmittedAnswer(first, "sentiment", "positive")])
    table = read_labels(study, place)
    assert table.select("item_id", "annotator", "label", "code", "is_check").rows() == [
        (first, "a1", "positive", 1.0, False),
        (first, "a2", "negative", -1.0, False),
        (second, "a2", "neutral", 0.0, False),
    ]
    assert abs((table["at"][0] - utc_now()).total_seconds()) < 300


def test_answers_that_the_task_no_longer_knows_are_not_left_out(study: Study) -> None:
    with Database(study) as db:
        db.save_answers("a1", [SubmittedAnswer(ids(study)[0], "sentiment", "negative")])
    file = study.folder / STUDY
    file.write_text(file.read_text().replace('label = "negative"', 'label = "bad"'))
    with pytest.raises(
        InputError, match=r"1 answers do not fit study\.toml, such as sentiment = 'negative'\."
    ):
        read_labels(read_study(study.folder))


def test_studies_in_one_database_do_not_meet(tmp_path: Path, place: str | None) -> None:
    one, other = make_study(tmp_path / "one"), make_study(tmp_path / "other")
    url = place or f"sqlite:///{tmp_path / 'both.db'}"
    with Database(one, url) as db, Database(other, url) as second:
        (made,) = db.create_invitations(1)
        assert db.find_person(made.token) == Person("a1", 1, made.token)
        assert second.find_person(made.token) is None
        db.save_answers("a1", [SubmittedAnswer(ids(one)[0], "sentiment", "neutral")])
        assert second.latest_answers() == []
    assert read_labels(other, url).is_empty()
    assert read_labels(one, url).height == 1


def test_no_answers_yet(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert read_labels(study).is_empty()
    assert not study.labels_file.exists()


def test_only_the_digest_of_a_link_is_kept(study: Study) -> None:
    with Database(study) as db:
        made = db.create_invitations(3)
    assert [one.annotator for one in made] == ["a1", "a2", "a3"]
    assert len({one.token for one in made}) == 3
    stored = b"".join(path.read_bytes() for path in study.folder.iterdir())
    assert not any(one.token.encode() in stored for one in made)


def test_links_are_renewed_and_forgotten(study: Study, place: str | None) -> None:
    item = ids(study)[0]
    with Database(study, place) as db:
        first, second = db.create_invitations(2)
        renewed = db.renew_link("a1")
        assert db.find_person(first.token) is None
        assert db.find_person(renewed.token) == Person("a1", 1, renewed.token)
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "neutral")])
        db.save_answers("a2", [SubmittedAnswer(item, "sentiment", "positive")])

        stranger = db.erase_person("a1")
        assert db.find_person(renewed.token) is None
        assert list(db.read_links()) == ["a2"]
        assert {one.annotator: one.label for one in db.latest_answers()} == {
            stranger: "neutral",
            "a2": "positive",
        }
        assert {
            one.at.hour + one.at.microsecond for one in db.latest_answers() if one.annotator == stranger
        } == {0}

        db.erase_person("a2", answers_too=True)
        assert [one.annotator for one in db.latest_answers()] == [stranger]
        assert db.find_person(second.token) is None
        # A number never comes again.
        assert db.create_invitations(1)[0].annotator == "a3"
        with pytest.raises(InputError) as caught:
            db.erase_person("a2")
        assert str(caught.value) == (
            "no annotator 'a2' has a link to this study. Expected: a3. Fix: name one of these."
        )
        with pytest.raises(InputError, match="no annotator 'a9'"):
            db.renew_link("a9")


def test_a_new_link_is_known_to_somebody_or_the_old_one_still_works(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(study, patience=0.1) as db:
        (before,) = db.create_invitations(1)

        def lost(_: object) -> None:
            raise DatabaseError("the connection was lost")

        with monkeypatch.context() as patch:
            # Nothing is read after the old link has been replaced: whoever asked could not learn the new one.
            patch.setattr(db, "read", lost)
            renewed = db.renew_link("a1")
        assert renewed[:2] == before[:2] == ("a1", 1)
        assert db.find_person(renewed.token) == renewed
        assert db.find_person(before.token) is None


@pytest.mark.parametrize("count", [0, 10_001])
def test_so_many_people_are_refused(study: Study, count: int) -> None:
    with Database(study) as db, pytest.raises(InputError, match=r"Expected: 1 to 10,000"):
        db.create_invitations(count)


def test_pages_are_claimed_once(study: Study, place: str | None) -> None:
    with Database(study, place) as db:
        service, person = AnnotationService(db), Person("a1", 1)
        (page,) = service.claim_pages(person)
        assert len(page) == 10
        assert service.claim_pages(person) == [page]
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "neutral") for item in page])
        pages = service.claim_pages(person)
        assert len(pages) == 2
        assert not set(pages[0]) & set(pages[1])
        assert service.read_claims("a1").pages == pages
        assert service.count_progress() == (20, 0, 10, 10, 0)


def test_many_at_once_never_too_many_an_item(study: Study, place: str | None) -> None:
    with Database(study, place) as db:
        service = AnnotationService(db)
        someone = [Person(f"a{number}", number) for number in range(1, 9)]
        with ThreadPoolExecutor(8) as pool:
            handed = list(pool.map(service.claim_pages, someone))
    counts: dict[str, int] = {}
    for pages in handed:
        for item in (item for page in pages for item in page):
            counts[item] = counts.get(item, 0) + 1
    # Twenty items, three people each: sixty places, of which eight people could fill eighty.
    assert sum(counts.values()) == 60
    assert set(counts.values()) == {3}


def test_items_of_somebody_who_never_came_back_are_handed_on(tmp_path: Path, place: str | None) -> None:
    study = make_study(tmp_path / "s", items=10, annotators=1, checks=False, hold_hours=24)
    with Database(study, place) as db:
        service, start = AnnotationService(db), utc_now()
        (page,) = service.claim_pages(Person("a1", 1), now=start)
        assert service.claim_pages(Person("a2", 2), now=start + timedelta(hours=23)) == []
        (later,) = service.claim_pages(Person("a2", 2), now=start + timedelta(hours=25))
        assert set(later) == set(page)


def test_who_comes_back_too_late_is_not_one_too_many(tmp_path: Path, place: str | None) -> None:
    study = make_study(tmp_path / "s", items=10, annotators=1, checks=False, hold_hours=24)
    with Database(study, place) as db:
        service, start = AnnotationService(db), utc_now() - timedelta(hours=30)
        first, second = Person("a1", 1), Person("a2", 2)
        ((done, *left),) = service.claim_pages(first, now=start)
        db.save_answers("a1", [SubmittedAnswer(done, "sentiment", "neutral")])
        (later,) = service.claim_pages(second, now=start + timedelta(hours=25))
        assert set(later) == set(left)
        # What they answered stays to be looked at; the rest is somebody else's now.
        assert service.resume_claims("a1").pages == [(done,)]
        assert service.read_claims("a1").pages == [(done,)]
        assert service.claim_pages(first) == [(done,)]
        # The second leaves as well: nobody holds the nine, and who comes first has them for another day.
        much_later = start + timedelta(hours=60)
        assert service.resume_claims("a1", now=much_later).pages == [(done, *left)]
        assert service.resume_claims("a2", now=much_later).pages == []
        assert service.claim_pages(second, now=much_later) == []


def test_checks_come_back_with_the_texts_around_them(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", items=9, annotators=1, hold_hours=24)
    with Database(study) as db:
        service, start, later = AnnotationService(db), utc_now(), utc_now() + timedelta(hours=25)
        pages = [service.claim_pages(Person(f"a{number}", number), now=start) for number in (1, 2)]
        assert pages[1] == []
        assert service.read_claims("a1", now=later).pages == []
        assert service.resume_claims("a1", now=later).pages == pages[0]


def test_an_answer_does_not_outlive_being_forgotten(study: Study, place: str | None) -> None:
    with Database(study, place) as db:
        db.create_invitations(1)
        ((item, *_),) = AnnotationService(db).claim_pages(Person("a1", 1))
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "neutral")], handed=True)
        db.erase_person("a1", answers_too=True)
        # It was on its way while the id was erased.
        with pytest.raises(InputError, match="not assigned to you"):
            db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "neutral")], handed=True)
        assert db.latest_answers() == []


def test_a_locked_database_is_waited_for_and_then_named(study: Study) -> None:
    item = ids(study)[0]
    with Database(study, patience=0.5) as db:
        holder = sqlite3.connect(study.labels_file, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="cannot be used: database is locked"):
            db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "neutral")], mark="1" * 16)
        holder.execute("ROLLBACK")
        holder.close()
        assert db.latest_answers() == []
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "neutral")], mark="1" * 16)
        assert len(db.latest_answers()) == 1


def test_a_lock_that_ends_costs_only_time(study: Study) -> None:
    item = ids(study)[0]
    with Database(study) as db:
        holder = sqlite3.connect(study.labels_file, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as pool:
            saved = pool.submit(
                db.save_answers, "a1", [SubmittedAnswer(item, "sentiment", "neutral")], mark="1" * 16
            )
            assert not saved.done()
            holder.execute("ROLLBACK")
            saved.result(timeout=20)
        holder.close()
        assert len(db.latest_answers()) == 1


def test_connections_that_were_cut_are_made_again(study: Study, postgres: str) -> None:
    item = ids(study)[0]
    with Database(study, postgres) as db:
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "positive")])
        other = sa.create_engine(postgres.replace("postgresql:", "postgresql+pg8000:"))
        with other.connect() as connection:
            mine = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            connection.execute(sa.text(f"{mine} and datname = current_database()"))
        other.dispose()
        db.save_answers("a1", [SubmittedAnswer(item, "sentiment", "negative")])
        assert [one.label for one in db.latest_answers()] == ["negative"]


def test_a_folder_of_any_name(tmp_path: Path) -> None:
    study = make_study(tmp_path / "what? 50% & ä", items=2)
    with Database(study) as db:
        db.create_invitations(1)
    assert study.labels_file.is_file()


@pytest.mark.parametrize(
    ("url", "came"),
    [
        ("mysql://me:secret@host/db", "a database of type 'mysql'"),
        ("no url: secret", "an invalid database URL"),
        ("sqlite://", "a database of type 'sqlite'"),
    ],
)
def test_other_databases_are_refused(study: Study, url: str, came: str) -> None:
    with pytest.raises(InputError) as caught:
        Database(study, url)
    assert str(caught.value) == (
        f"{came}. Expected: postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE. Fix: set one of "
        f"these with {VARIABLE} or --database."
    )


def test_a_database_that_is_gone_is_named_without_its_password(study: Study) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/none"
    with pytest.raises(DatabaseError) as caught, Database(study, url, patience=0.1):
        pass
    assert "postgresql+pg8000://me:***@127.0.0.1:1/none cannot be used" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_variable_names_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path / "s")
    monkeypatch.setenv(VARIABLE, f"sqlite:///{tmp_path / 'elsewhere.db'}")
    with Database(study) as db:
        db.create_invitations(1)
    assert (tmp_path / "elsewhere.db").is_file()
    assert not study.labels_file.exists()
    assert "elsewhere" not in (study.folder / "study.toml").read_text()
