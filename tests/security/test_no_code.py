"""Nothing that is read can run: no pickles, no code of model folders, no evaluation of text."""

from __future__ import annotations

import ast
import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models import tiny

from evenhand.classifiers.hub_classifier import HubClassifier
from evenhand.core.errors import EvenhandError, ModelError
from evenhand.core.records import Execution
from evenhand.models.hub import load

SOURCES = Path(__file__).resolve().parents[2] / "src" / "evenhand"
CPU = Execution("cpu", None, 1, True)
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {"eval", "exec", "compile", "__import__"}
UNPICKLERS = {
    *(("torch", "load"), ("np", "load"), ("numpy", "load"), ("pd", "read_pickle"), ("os", "system")),
    *(("yaml", name) for name in ("load", "load_all", "full_load", "unsafe_load")),
}
"""YAML is read with ``safe_load``, which makes plain values alone."""
WORDS = (
    *MODULES,
    *(f"{name}(" for name in CALLS),
    ".load(",
    "full_load",
    "unsafe_load",
    "load_all",
    "shell=",
)
WORDS += ("read_pickle", "os.system", "trust_remote_code", "allow_pickle")
ALLOWED = {("training/classifier_data.py", "np.load"), ("training/classifier_figures.py", "np.load")}
"""Arrays of our own trainings; numpy refuses pickled ones unless it is told not to."""


def _uses(path: Path) -> Iterator[str]:
    """What a module uses that could run what it reads."""
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in WORDS):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield module
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
                if (owner, name) in UNPICKLERS:
                    yield f"{owner}.{name}"
            case ast.keyword(arg="shell" | "trust_remote_code" | "allow_pickle" as name, value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield f"{name}={ast.unparse(value)}"


def test_nothing_in_the_package_could_run_what_it_reads() -> None:
    found = {
        (str(path.relative_to(SOURCES)), use) for path in sorted(SOURCES.rglob("*.py")) for use in _uses(path)
    }
    assert found - ALLOWED == set()


def test_the_check_sees_what_it_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "import pickle\nfrom joblib import load\neval('1')\ntorch.load('x')\nyaml.load(x)\n"
        "f(trust_remote_code=True)\nnp.save(x, allow_pickle=flag)\nf(trust_remote_code=False)\n"
    )
    assert sorted(_uses(path)) == [
        "allow_pickle=flag",
        "eval",
        "joblib",
        "pickle",
        "torch.load",
        "trust_remote_code=True",
        "yaml.load",
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tiny.llama(), tmp_path_factory.mktemp("llama"))


@pytest.fixture
def hostile(made: Path, tmp_path: Path) -> Path:
    """A model folder whose every part names code that leaves a mark when it is run."""
    folder = Path(shutil.copytree(made, tmp_path / "model"))
    code = f"open({str(tmp_path / 'mark')!r}, 'w').close()\n"
    for name in ("evil.py", "modeling_llama.py", "tokenization_evil.py", "configuration_evil.py", "setup.py"):
        (folder / name).write_text(code)
    names = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification")
    _change(folder / "config.json", auto_map=dict.fromkeys(names, "evil.Model"))
    _change(
        folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["tokenization_evil.Slow", "tokenization_evil.Fast"]},
    )
    return folder


def _change(path: Path, **values: object) -> None:
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(found | values), encoding="utf-8")


def _tried(folder: Path) -> None:
    """The folder as a language model and as a classifier; what can be loaded may be."""
    for read in (
        lambda: load(str(folder), execution=CPU),
        lambda: HubClassifier(str(folder), {"a": ()}, CPU),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HF_HUB_OFFLINE", "1")
            with contextlib.suppress(EvenhandError):
                read()


def test_code_in_a_model_folder_is_never_run(hostile: Path, tmp_path: Path) -> None:
    _tried(hostile)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("kind", ["mystery", "llama"])
def test_nor_where_the_folder_claims_to_need_it(hostile: Path, tmp_path: Path, kind: str) -> None:
    _change(hostile / "config.json", model_type=kind, architectures=["EvilForCausalLM"])
    _change(hostile / "tokenizer_config.json", tokenizer_class="EvilTokenizer")
    (hostile / "tokenizer.json").unlink()
    (hostile / "vocab.txt").write_text("[PAD]\n")
    _tried(hostile)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "asked",
    [
        {"attn_implementation": "evil/kernel"},
        {"_attn_implementation": "evil/kernel@main:run"},
        {"experts_implementation": {"": "evil/kernel"}},
        {"text_config": {"attn_implementation": "paged|evil/kernel"}},
    ],
)
def test_compiled_code_of_the_hub_is_refused(made: Path, tmp_path: Path, asked: dict[str, object]) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "model"))
    _change(folder / "config.json", **asked)
    for read in (
        lambda: load(str(folder), execution=CPU),
        lambda: HubClassifier(str(folder), {"a": ()}, CPU),
    ):
        with pytest.raises(ModelError, match=r"requests custom code: .*evil/kernel"):
            read()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth"])
def test_a_pickle_is_refused_unread(hostile: Path, tmp_path: Path, name: str) -> None:
    mark = str(tmp_path / "mark")
    # What pickle runs when it reads: builtins.open(mark, "w").
    pickled = b"cbuiltins\nopen\n(V" + mark.encode() + b"\nVw\ntR."
    (hostile / "model.safetensors").unlink()
    (hostile / name).write_bytes(pickled)
    for read in (
        lambda: load(str(hostile), execution=CPU),
        lambda: HubClassifier(str(hostile), {"a": ()}, CPU),
    ):
        with pytest.raises(ModelError, match="a pickle, which can run code when it is read"):
            read()
    assert not (tmp_path / "mark").exists()
