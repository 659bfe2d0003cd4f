"""The command line, one file a command: parse, call one public function, print."""

from evenhand.cli.app import main

__all__ = ["main"]
