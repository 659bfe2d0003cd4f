"""Runs the blocks of a page as its reader would: in order, in one folder, without a network."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.docs import given
from tests.docs.pages import READ, ROOT, SHOWN, Block

from evenhand.cli import main

SHELL: Final = ("cat", "cp", "ls", "mkdir", "pytest")
"""Programs a page may call beside evenhand and Python."""


@dataclass(slots=True)
class Reader:
    """Somebody who types what a page says into an empty folder."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    in_full: bool
    ends: ExitStack
    scene: given.Scene = field(init=False)
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})

    def __post_init__(self) -> None:
        """Sit down in the folder, with the network unplugged."""
        self.scene = given.Scene(self.folder, self.ends)
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.setenv("EVENHAND_DEBUG", "1")
        self.monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        self.monkeypatch.setenv("MPLBACKEND", "agg")
        self.monkeypatch.setenv("XDG_DATA_HOME", str(self.folder / ".share"))
        _unplug(self.monkeypatch)

    def follow(self, block: Block) -> bool:
        """Do what a block says; False where it is left out."""
        if "not run" in block.said or ("slow" in block.said and not self.in_full):
            return False
        if "needs" in block.said and not self._has(block.said["needs"]):
            return False
        for name in filter(None, block.said.get("given", "").split(", ")):
            getattr(given, name.replace(" ", "_"))(self.scene)
        if "file" in block.said:
            self._keep(block)
        elif block.language == "python":
            exec(compile(self._here(_at_line(block)), block.place, "exec"), self.names)
        elif block.language == "console":
            self._type(block)
        elif block.language in READ:
            _parse(block)
        else:
            assert block.language in SHOWN, f"{block.place}: a block of {block.language or 'no language'}"
        return True

    def _keep(self, block: Block) -> None:
        if block.language in READ:
            _parse(block)
        path = self.folder / block.said["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._here(block.text), encoding="utf-8")

    def _here(self, text: str) -> str:
        """The text with addresses that are elsewhere in this scene."""
        for said, meant in self.scene.elsewhere.items():
            text = text.replace(said, meant)
        return text

    def _has(self, data: str) -> bool:
        found = Path(os.environ.get("EVENHAND_DATA", ROOT.parent / "shared" / "data"))
        if not (found / data).is_dir():
            return find_spec(data) is not None
        self.monkeypatch.setenv("EVENHAND_DATA", str(found))
        if not (self.folder / data).exists():
            (self.folder / data).symlink_to(found / data)
        return True

    def _type(self, block: Block) -> None:
        said = list(commands(block.text))
        for number, words in enumerate(said):
            is_last = number == len(said) - 1
            wanted = int(block.said.get("exits with", 0)) if is_last else 0
            typed = self._replaced(words, block)
            code = self._call(typed)
            assert code == wanted, f"{block.place}: {shlex.join(typed)} ended with {code}, not {wanted}"

    def _replaced(self, words: list[str], block: Block) -> list[str]:
        changes = block.said.get("with", "")
        if not self.in_full:
            changes += "; " + block.said.get("quickly with", "")
        for change in filter(str.strip, changes.split(";")):
            old, _, new = (part.strip() for part in change.partition(" ="))
            words = [part for word in words for part in (shlex.split(new) if word == old else [word])]
        return [self._here(word) for word in words]

    def _call(self, words: list[str]) -> int:
        program, *arguments = words
        if program == "evenhand":
            return self._within(["evenhand", *arguments], None)
        if program == "python" and arguments[0] == "-m":
            return self._within(arguments[1:], arguments[1])
        if program == "export":
            name, _, value = arguments[0].partition("=")
            self.monkeypatch.setenv(name, value)
            return 0
        assert program in SHELL, f"{program} is none of evenhand, python -m, export, {', '.join(SHELL)}"
        command = [sys.executable, "-m", *words] if program == "pytest" else words
        return subprocess.run(command, check=False, cwd=self.folder, stdin=subprocess.DEVNULL).returncode

    def _within(self, argv: list[str], module: str | None) -> int:
        """The exit code of a program that runs in this process: a new one would cost seconds."""
        self.monkeypatch.setattr(sys, "argv", argv)
        try:
            if module is None:
                main()
            else:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return 0


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a block; where one begins with a dollar sign, other lines are output."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    for line in lines:
        if words := shlex.split(line, comments=True):
            yield words


def _at_line(block: Block) -> str:
    """The code with as many empty lines before it as the page has, so that traces name the page's line."""
    return "\n" * block.line + block.text


def _parse(block: Block) -> None:
    try:
        {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}[block.language](block.text)
    except (ValueError, yaml.YAMLError) as error:
        raise AssertionError(f"{block.place}: {error}") from error


def _unplug(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "localhost"
        if host not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a page of the documentation asked for {host}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_here)
