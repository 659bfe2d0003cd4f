"""The command line, a file for each kind of command: parse, call one public function, print."""

from evenhand.cli.entry import main

__all__ = ["main"]
