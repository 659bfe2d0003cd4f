"""Every command and its Python twin take the same options."""

from __future__ import annotations

import importlib
import inspect

import click
import pytest
import typer

import evenhand
from evenhand.cli.app import app
from evenhand.core.options import keywords_of

TWINS = {
    "corpus": "scan_corpus",
    "report": "render",
    "list": "available",
    "show": "card",
    "annotate init": "create_study",
    "annotate invite": "invite_people",
    "annotate serve": "serve_study",
    "annotate status": "evenhand.annotate.study_server:read_study_state",
    "annotate forget": "forget_person",
    "annotate sample": "sample_items",
    "annotate settle": "settle_labels",
    "annotate export": "export_labels",
    "annotate import": "import_labels",
}
"""Commands whose function has another name."""
WITHOUT = {
    "doctor": "prints what is installed",
    "init": "writes a file that the command line reads",
    "clean": "empties the cache",
    "terms expand": "prints inflections, for lists that are files",
}
"""Commands that have no twin."""
SPELLINGS = {
    "score": {"file": "texts"},
    "annotate init": {"study": "folder"},
}
"""Arguments that have another name in Python; other spellings are declared with their options."""
SHELL_ALONE = {
    "dry_run": "prints a plan; a function that prints nothing has none",
    "github": "prints Gate.annotations()",
}
PYTHON_ALONE = {
    "progress": "is where a long step reports to; the terminal's bars are the command's",
    "callbacks": "are functions",
    "command": "is what the manifest records as the command, which the command line knows",
    "intersections": "is a setting of the settings file",
}


def _commands() -> dict[str, click.Command]:
    root = typer.main.get_command(app)
    commands: dict[str, click.Command] = {}
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        commands |= {f"{name} {sub}": one for sub, one in inner.items()} if inner else {name: command}
    return commands


COMMANDS = _commands()


def _twin(name: str):
    module, _, function = TWINS.get(name, name.split()[-1].replace("-", "_")).rpartition(":")
    return getattr(importlib.import_module(module) if module else evenhand, function)


def _keywords(name: str) -> set[str]:
    """Parameters of the twin, ``*runs`` among them."""
    twin = _twin(name)
    several = {
        one.name
        for one in inspect.signature(twin).parameters.values()
        if one.kind is inspect.Parameter.VAR_POSITIONAL
    }
    return {*keywords_of(inspect.unwrap(twin)), *several}


def _options(name: str) -> set[str]:
    """Options and arguments of the command as Python spells them."""
    return {SPELLINGS.get(name, {}).get(one.name, one.name) for one in COMMANDS[name].params}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - WITHOUT.keys()))
def test_every_option_is_a_keyword_of_the_twin(name):
    assert _options(name) - SHELL_ALONE.keys() - _keywords(name) == set()


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - WITHOUT.keys()))
def test_every_keyword_of_the_twin_is_an_option(name):
    assert _keywords(name) - _options(name) - PYTHON_ALONE.keys() == set()


def test_the_exceptions_are_in_use():
    assert WITHOUT.keys() <= COMMANDS.keys()
    assert SHELL_ALONE.keys() <= {word for name in COMMANDS for word in _options(name)}
    assert PYTHON_ALONE.keys() <= {
        word for name in COMMANDS.keys() - WITHOUT.keys() for word in _keywords(name)
    }
    for name, spellings in SPELLINGS.items():
        assert set(spellings.values()) <= _options(name) & _keywords(name)
