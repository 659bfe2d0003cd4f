"""Takes the pictures of the documentation: the report and the annotation app, from the bundled example.

Needs Chromium, Playwright and Pillow. Run it after the looks of either have changed, look at the pictures,
and commit them: ``python scripts/take_pictures.py``.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

import evenhand
from evenhand.annotate.database import Database
from evenhand.annotate.study import Study
from evenhand.annotate.web_app import create_app
from evenhand.core.files import asset_path

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
DESK: Final = {"viewport": {"width": 1440, "height": 900}}
PHONE: Final = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
LIGHT: Final = {"color_scheme": "light", "reduced_motion": "reduce"}


def main() -> int:
    """The exit code; four pictures are in ``docs/pictures`` afterwards."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        sys.stderr.write("no Chromium was found: install the distribution's package chromium\n")
        return 2
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        example = asset_path("examples", "texts.csv")
        options = {"group": {"profession": "group"}, "prompt": "prompt", "id": "id"}
        run = evenhand.score(example, **options, out=Path(work) / "run")  # type: ignore[arg-type]
        _report(browser, run.path / "report.html")
        _app(browser, evenhand.create_study(Path(work) / "study", run.path, task="sentiment", items=20))
        browser.close()
    return 0


def _report(browser: Any, file: Path) -> None:
    for name, size in (("report", DESK), ("report-phone", PHONE)):
        page = browser.new_page(**size, **LIGHT)
        page.goto(file.as_uri())
        page.wait_for_timeout(300)
        _keep(page, name)
        page.close()


def _app(browser: Any, study: Study) -> None:
    with Database(study) as db, _served(db) as address:
        tokens = [one.token for one in db.create_invitations(2)]
        for token, (name, size) in zip(tokens, (("annotate", DESK), ("annotate-phone", PHONE)), strict=True):
            page = browser.new_context(**size, **LIGHT).new_page()
            page.goto(f"{address}/join/{token}")
            page.get_by_role("link", name="Begin").first.click()
            page.wait_for_selector("html.js .card.now")
            page.wait_for_timeout(300)
            _keep(page, name)
            page.close()


def _keep(page: Any, name: str) -> None:
    """One screen as WebP without loss: text stays sharp, and flat colours pack well."""
    image = Image.open(io.BytesIO(page.screenshot()))
    image.convert("RGB").save(PICTURES / f"{name}.webp", lossless=True, method=6)


@contextlib.contextmanager
def _served(db: Database) -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(db), host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=20)


if __name__ == "__main__":
    sys.exit(main())
