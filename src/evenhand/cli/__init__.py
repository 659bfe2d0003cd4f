"""The command line, one module per kind of command: parse, call one public function, print."""

from evenhand.cli.entry import main

__all__ = ["main"]
