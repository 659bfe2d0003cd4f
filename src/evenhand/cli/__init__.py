"""The command line, one file a command: parse, call one public function, print."""

from evenhand.cli.entry import main

__all__ = ["main"]
