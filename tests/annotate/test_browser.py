"""The app in a real browser: by keyboard, by touch, without a connection, two people at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.annotate.study_parts import make_study, serving
from tests.chromium import PATIENCE, opened
from tests.report.test_browser import CONTRAST

from evenhand.annotate.database import Database

pytestmark = pytest.mark.browser
STILL = {"reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, **STILL}
DESK = {"viewport": {"width": 1440, "height": 900}, **STILL}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from opened()


class Seat:
    """Somebody at a browser of their own."""

    def __init__(self, browser: Any, address: str, token: str, **options: object) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.logged: list[str] = []
        self.page.on("console", lambda message: self.logged.append(message.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.goto(f"{address}/join/{token}")

    def begin(self) -> None:
        self.page.get_by_role("link", name="Begin").first.click()
        self.page.wait_for_selector("html.js .card.now")

    def answer(self, key: str) -> None:
        """Press a key until it is taken: on a busy machine a browser has lost one just after a page came."""
        before = self.chosen()
        for _ in range(3):
            self.page.keyboard.press(key)
            if self.chosen() > before:
                return
        raise AssertionError(f"{key} is not taken; logged: {self.logged}")

    def saved(self) -> None:
        self.page.wait_for_selector('#status[data-state="saved"]')

    def chosen(self) -> int:
        return int(self.page.locator(".choice input:checked").count())


class House:
    """A study with people in it."""

    def __init__(self, browser: Any, db: Database, address: str) -> None:
        self.browser, self.db, self.address = browser, db, address
        self.tokens = [one.token for one in db.create_invitations(2)]
        self.seats: list[Seat] = []

    def seat(self, number: int = 0, **options: object) -> Seat:
        self.seats.append(Seat(self.browser, self.address, self.tokens[number], **options))
        return self.seats[-1]


@pytest.fixture
def house(browser: Any, tmp_path: Path) -> Iterator[House]:
    yield from _house(browser, tmp_path, "sentiment")


@pytest.fixture
def regard(browser: Any, tmp_path: Path) -> Iterator[House]:
    yield from _house(browser, tmp_path, "regard")


@pytest.fixture
def likert(browser: Any, tmp_path: Path) -> Iterator[House]:
    yield from _house(browser, tmp_path, "likert")


def _house(browser: Any, folder: Path, task: str) -> Iterator[House]:
    methods = ("one", "two", "three", "four") if task == "likert" else ("m",)
    items = 10 if task == "likert" else 20
    study = make_study(folder / "s", task=task, items=items, methods=methods, checks=task == "likert")
    with Database(study) as db, serving(db) as address:
        found = House(browser, db, address)
        yield found
        for seat in found.seats:
            seat.context.close()


def test_two_pages_by_keyboard_alone(house: House) -> None:
    seat = house.seat(**DESK)
    seat.begin()
    page = seat.page
    for key in "1231231231":
        page.keyboard.press(key)
    seat.saved()
    assert seat.chosen() == 10
    assert page.text_content("#here") == "10 of 10 here"
    assert page.text_content("#answered") == "10"
    page.keyboard.press("Enter")
    page.wait_for_url("**/work?page=1")
    page.wait_for_selector("html.js .card.now")
    for _ in range(10):
        page.keyboard.press("2")
    seat.saved()
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-done]")
    assert "All 20 texts you were given are answered and saved" in page.text_content("main")
    labels = [one.label for one in house.db.latest_answers("a1")]
    # The order of the keys is positive, neutral, negative: four, three and three, then ten neutral ones.
    assert labels[:10] == (["positive", "neutral", "negative"] * 4)[:10]
    assert labels[10:] == ["neutral"] * 10
    assert seat.logged == []


def test_undo_on_a_page_and_across_pages(house: House) -> None:
    seat = house.seat(**DESK)
    seat.begin()
    page = seat.page
    page.keyboard.press("1")
    page.keyboard.press("1")
    page.keyboard.press("u")
    seat.saved()
    assert seat.chosen() == 1
    page.keyboard.press("3")
    for _ in range(8):
        page.keyboard.press("2")
    seat.saved()
    page.keyboard.press("Enter")
    page.wait_for_url("**/work?page=1")
    page.wait_for_selector("html.js .card.now")
    page.keyboard.press("u")
    page.wait_for_url("**/work?page=0")
    page.wait_for_function("document.querySelectorAll('.choice input:checked').length === 9")
    seat.saved()
    assert len(house.db.latest_answers()) == 9
    page.keyboard.press("1")
    seat.saved()
    page.locator("#undo").click()
    seat.saved()
    page.wait_for_function("document.querySelectorAll('.choice input:checked').length === 9")
    assert seat.logged == []


def test_by_touch_on_a_phone(regard: House) -> None:
    seat = regard.seat(**PHONE)
    seat.page.get_by_role("link", name="Begin").first.tap()
    seat.page.wait_for_selector("html.js .card.now")
    page = seat.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    faces = page.locator(".face")
    heights = faces.evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")
    assert min(heights) >= 44
    for number in range(10):
        card = page.locator(".card").nth(number)
        card.locator("[data-question=regard] .choice").nth(number % 6).tap()
        card.locator("[data-question=sentiment] .choice").nth(0).tap()
    seat.saved()
    assert len(regard.db.latest_answers("a1")) == 20
    page.locator("#undo").tap()
    seat.saved()
    assert seat.chosen() == 19
    page.locator("#next").tap()
    assert page.text_content("#trouble") == "Some questions on this page are not answered yet."
    page.locator(".card").nth(9).locator("[data-question=sentiment] .choice").nth(1).tap()
    seat.saved()
    page.locator("#next").tap()
    page.wait_for_url("**/work?page=1")
    assert seat.logged == []


def test_a_connection_that_goes_and_comes_back(house: House) -> None:
    seat = house.seat(**DESK)
    seat.begin()
    page = seat.page
    page.keyboard.press("1")
    seat.saved()
    seat.context.set_offline(True)
    for _ in range(9):
        page.keyboard.press("3")
    page.wait_for_selector('#status[data-state="waiting"]')
    assert "kept on this device" in page.text_content("#trouble")
    page.keyboard.press("Enter")  # the page is not left while something is unsent
    page.wait_for_timeout(200)
    assert "page=1" not in page.url
    assert len(house.db.latest_answers()) == 1
    seat.context.set_offline(False)
    seat.saved()
    assert len(house.db.latest_answers()) == 10
    assert page.locator("#trouble").is_hidden()
    # Another device, by the same link: it is all there.
    phone = house.seat(**PHONE)
    phone.page.get_by_role("link", name="Continue where you left off").first.tap()
    phone.page.wait_for_selector("html.js .card.now")
    assert phone.page.text_content("#answered") == "10"
    phone.page.goto(f"{house.address}/work?page=0")
    assert phone.chosen() == 10


def test_unsent_answers_outlive_the_page(house: House) -> None:
    seat = house.seat(**DESK)
    seat.begin()
    page = seat.page
    page.route("**/answers", lambda route: route.abort())
    seat.answer("1")
    page.wait_for_selector('#status[data-state="waiting"]')
    page.unroute("**/answers")
    page.reload()
    page.wait_for_selector("html.js .card.now")
    seat.saved()
    assert seat.chosen() == 1
    assert [one.label for one in house.db.latest_answers()] == ["positive"]


@pytest.mark.parametrize("where", ["/", "/work?page=9"])
def test_unsent_answers_are_sent_from_the_first_and_the_last_page(house: House, where: str) -> None:
    seat = house.seat(**DESK)
    seat.begin()
    page = seat.page
    ends = where != "/"
    if ends:
        for number in (1, 2):
            for _ in range(10):
                page.keyboard.press("2")
            page.keyboard.press("Enter")
            page.wait_for_url(f"**/work?page={number}")
            page.wait_for_selector("html.js .card.now" if number == 1 else "[data-done]")
        page.goto(f"{house.address}/work?page=1")
        page.wait_for_selector("html.js .card.now")
    page.route("**/answers", lambda route: route.abort())
    page.keyboard.press("1")
    page.wait_for_selector('#status[data-state="waiting"]')
    page.unroute("**/answers")
    page.goto(f"{house.address}{where}")
    assert page.locator("[data-done]").count() == ends
    seat.saved()
    assert "positive" in [one.label for one in house.db.latest_answers()]
    assert page.locator("#trouble").is_hidden()


def test_two_people_at_once_in_one_study(house: House) -> None:
    first, second = house.seat(0, **DESK), house.seat(1, **PHONE)
    first.begin()
    second.page.get_by_role("link", name="Begin").first.tap()
    second.page.wait_for_selector("html.js .card.now")
    for number in range(10):
        first.page.keyboard.press("1")
        second.page.locator(".card").nth(number).locator(".choice").nth(2).tap()
    first.saved()
    second.saved()
    labels = {who: {one.label for one in house.db.latest_answers(who)} for who in ("a1", "a2")}
    assert labels == {"a1": {"positive"}, "a2": {"negative"}}
    assert len(house.db.latest_answers()) == 20


def test_a_scale_one_at_a_time(likert: House) -> None:
    seat = likert.seat(**DESK)
    seat.begin()
    page = seat.page
    for number in range(9):  # eight paragraphs and a check
        page.wait_for_url(f"**/work?page={number}" if number else "**/work")
        page.wait_for_selector("html.js .card.now")
        assert page.locator(".card").count() == 1
        for key in "275":
            page.keyboard.press(key)
        seat.saved()
        page.keyboard.press("Enter")
    page.wait_for_selector("[data-done]")
    assert "All 9 texts" in page.text_content("main")
    labels = [one.label for one in likert.db.latest_answers("a1")]
    assert labels == ["2", "7", "5"] * 9


def test_arrow_keys_choose_without_running_ahead_and_keys_can_be_switched_off(house: House) -> None:
    seat = house.seat(**DESK)
    seat.begin()
    page = seat.page
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    seat.saved()
    assert seat.chosen() == 1
    assert page.evaluate("document.activeElement.name === document.querySelector('.card input').name")
    page.keyboard.press("Enter")
    page.locator("#keys summary").click()
    page.locator("#use-keys").uncheck()
    page.keyboard.press("1")
    page.wait_for_timeout(100)
    assert seat.chosen() == 1
    assert seat.logged == []


@pytest.mark.parametrize("options", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("layout", [None, "single", "side-by-side"])
def test_whatever_a_model_wrote_stays_in_its_card(
    browser: Any, tmp_path: Path, layout: Any, options: dict[str, Any]
) -> None:
    study = make_study(tmp_path / "s", items=4, checks=False, layout=layout)
    odd = [
        "W" * 400,
        "\u202eturned <b>around</b>",
        "https://h.example/" + "a/" * 200,
        "\u05e9\u05dc\u05d5\u05dd " * 60,
    ]
    study.items().with_columns(text=pl.Series(odd), pair=pl.lit("p")).write_parquet(
        study.folder / "items.parquet"
    )
    with Database(study) as db, serving(db) as address:
        seat = House(browser, db, address).seat(**options)
        seat.page.goto(f"{address}/work")
        width = options["viewport"]["width"]
        assert seat.page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = "all => all.every((one) => one.scrollWidth <= one.clientWidth)"
        assert seat.page.locator(".card").evaluate_all(boxes)
        seat.context.close()


def test_without_scripts_the_page_is_a_form(house: House) -> None:
    seat = house.seat(java_script_enabled=False, **DESK)
    page = seat.page
    page.get_by_role("link", name="Begin").first.click()
    for number in range(10):
        page.locator(".card").nth(number).locator("input").nth(1).check()
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/work?page=1")
    assert len(house.db.latest_answers()) == 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_names_and_focus(regard: House, scheme: str) -> None:
    seat = regard.seat(color_scheme=scheme, **DESK)
    assert seat.page.evaluate(CONTRAST) == []
    seat.begin()
    page = seat.page
    page.keyboard.press("1")
    seat.saved()
    assert page.evaluate(CONTRAST) == []
    groups = page.get_by_role("group")
    assert groups.count() >= 20
    assert page.get_by_role("group", name="What kind of language does the text use?").count() == 10
    assert page.get_by_role("radio", name="Mixed: good and bad").count() == 10
    # The keyboard reaches what it must, and says where it is.
    assert page.evaluate("document.activeElement.type") == "radio"
    outline = page.evaluate("getComputedStyle(document.activeElement.nextElementSibling).outlineStyle")
    assert outline == "solid"
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("h1").count() == 1
