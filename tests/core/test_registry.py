import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from evenhand.core import registry
from evenhand.core.errors import InputError, MissingLibraryError, UnknownNameError


def _registered(monkeypatch, **values):
    points = [EntryPoint(name, value, "evenhand.metrics") for name, value in values.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "evenhand.metrics" else [])


def test_an_unknown_name_says_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        registry.create_metric("sentimnet")
    assert caught.value.problem == "there is no metric named 'sentimnet'"
    assert "sentiment" in caught.value.expected
    assert caught.value.fix == "did you mean 'sentiment'?"


def test_an_unknown_option_says_the_accepted_ones():
    with pytest.raises(InputError) as caught:
        registry.create_metric("sentiment", {"cutt": 0.1})
    assert str(caught.value) == (
        "metric 'sentiment' has no option 'cutt'. Expected: cut. Fix: see `evenhand show sentiment`."
    )


def test_a_missing_library_names_the_extra(monkeypatch):
    _registered(monkeypatch, needy="tests_needy_module:Thing")
    error = ModuleNotFoundError("No module named 'torch'", name="torch")

    def load(self):
        raise error

    monkeypatch.setattr(EntryPoint, "load", load)
    with pytest.raises(MissingLibraryError) as caught:
        registry.create_metric("needy")
    assert caught.value.fix == 'pip install "evenhand[models]", or ".[models]" in a clone'


def test_a_broken_plugin_fails_when_asked_for_and_hides_nobody(monkeypatch):
    _registered(monkeypatch, broken="no_such_module:Thing", fine="evenhand.metrics.sentiment:Sentiment")
    assert [entry.name for entry in registry.list_entries("metrics")] == ["broken", "fine"]
    registry.create_metric("fine")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        registry.create_metric("broken")


def test_an_entry_says_what_it_is_without_being_imported(monkeypatch):
    _registered(
        monkeypatch,
        broken="no_such_module:Thing",
        fine="evenhand.metrics.toxicity:Toxicity",
        nameless="evenhand.metrics.toxicity:Nobody",
    )
    assert [entry.about for entry in registry.list_entries("metrics")] == [
        "",
        "The probability, in [0, 1], that people would call a text toxic.",
        "",
    ]


def test_two_packages_with_one_name_are_an_error(monkeypatch):
    points = [EntryPoint("same", value, "evenhand.metrics") for value in ("a:A", "b:B")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(InputError, match="registered twice: a:A and b:B"):
        registry.list_entries("metrics")


def test_listing_imports_nothing():
    code = (
        "import sys; from evenhand.core import registry;"
        "[entry.about for kind in registry.KINDS for entry in registry.list_entries(kind)];"
        "bad = {'torch', 'polars', 'scipy', 'numba', 'pydantic', 'vaderSentiment'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
