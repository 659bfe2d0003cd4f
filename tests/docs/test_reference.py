import importlib.util
import json
import re
from pathlib import Path

import pytest

from evenhand.store.schemas import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_line_reference_is_current():
    path = ROOT / "scripts" / "write_cli_reference.py"
    spec = importlib.util.spec_from_file_location("write_cli_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    assert written == module.page(), "run scripts/write_cli_reference.py"


@pytest.mark.parametrize("table", sorted(set(SCHEMAS) - {"examples"}))
def test_the_run_folder_reference_names_every_column(table):
    page = (ROOT / "docs" / "reference" / "run-folder.md").read_text()
    row = next(line for line in page.splitlines() if f"`{table}.parquet`" in line)
    columns = re.findall(r"`([a-z0-9_, ]+)`", row.split("|")[2])[0].split(", ")
    assert columns == list(SCHEMAS[table])


def _blocks():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)):
            yield pytest.param(block, id=f"{path.relative_to(ROOT)}-{number}")


@pytest.mark.parametrize("block", list(_blocks()))
def test_every_python_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {"__name__": "block"})


def test_the_settings_page_is_valid_settings(tmp_path):
    from evenhand.api.settings import resolve

    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    (tmp_path / "e.toml").write_text(re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)[0])
    settings = resolve({"config": tmp_path / "e.toml"})
    # The page shows the defaults: it must equal what no file gives, but for what the suite decides.
    plain = json.loads(resolve({}).model_dump_json())
    shown = json.loads(settings.model_dump_json())
    assert {name: shown[name] for name in ("model", "suite", "compare", "execution")} == {
        name: plain[name] for name in ("model", "suite", "compare", "execution")
    }
