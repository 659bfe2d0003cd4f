"""What is generated from the code is current, and what is written by hand names what the code has."""

import importlib.util
import re
from importlib.metadata import version
from types import ModuleType

import pytest
from tests.docs.pages import ROOT

import evenhand
from evenhand.store.schemas import SCHEMAS


def script(name: str) -> ModuleType:
    path = ROOT / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "writer"), [("command-line", "write_cli_reference"), ("python", "write_python_reference")]
)
def test_a_generated_page_is_current(page, writer):
    pinned = re.search(r"^typer==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    assert pinned is not None
    if (here := version("typer")) != pinned[1]:
        pytest.skip(f"Typer {here} words the help otherwise than {pinned[1]}, with which the page is written")
    written = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    assert written == script(writer).page(), f"run scripts/{writer}.py"


def test_the_python_reference_tells_every_public_name():
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    untold = [name for name in evenhand.__all__ if f"\n### {name}\n" not in page]
    assert untold == ["__version__"]


def test_the_map_for_programs_is_current_and_leads_somewhere():
    writer = script("write_llms_txt")
    for file, prefix in writer.FILES.items():
        written = file.read_text()
        assert written == writer.text(prefix), "run scripts/write_llms_txt.py"
        lost = [to for to in re.findall(r"\]\(([^)]+)\)", written) if not (file.parent / to).is_file()]
        assert lost == []


@pytest.mark.parametrize("table", sorted(set(SCHEMAS) - {"examples"}))
def test_the_run_folder_reference_names_every_column(table):
    page = (ROOT / "docs" / "reference" / "run-folder.md").read_text()
    row = next(line for line in page.splitlines() if f"`{table}.parquet`" in line)
    columns = re.findall(r"`([a-z0-9_, ]+)`", row.split("|")[2])[0].split(", ")
    assert columns == list(SCHEMAS[table])


def test_the_settings_page_is_valid_settings(tmp_path):
    from evenhand.config import resolve_config

    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    (tmp_path / "e.toml").write_text(re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)[0])
    settings = resolve_config({"config": tmp_path / "e.toml"})
    # The page shows the defaults: it must equal what no file gives, but for what the suite decides.
    plain = resolve_config({}).record()
    shown = settings.record()
    assert {name: shown[name] for name in ("model", "suite", "compare", "execution")} == {
        name: plain[name] for name in ("model", "suite", "compare", "execution")
    }
