"""``evenhand debias``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from evenhand.audits.options import DebiasOptions
from evenhand.cli.commands import Argument, takes
from evenhand.core.errors import InputError

if TYPE_CHECKING:
    from evenhand.audits.debias import WrittenText

MODEL = Argument(
    "model", str, "builtin (the default), a folder, a Hub id or a .gguf file.", "builtin", "models"
)


@takes(DebiasOptions, MODEL)
def command(model: str, *, dry_run: bool, **options: Any) -> None:
    """Write text with a mitigation on."""
    from evenhand.audits.debias import prepare
    from evenhand.cli.console import print_warning
    from evenhand.cli.entry import PARTIAL
    from evenhand.cli.run_command import finished, run_job

    prepared = prepare(model, **options)
    if prepared.audit is not None:
        run_job(prepared.audit, dry_run=dry_run)
        return
    written = finished(prepared, dry_run=dry_run)
    if written is None:
        return
    for text in written.texts:
        _show(text, with_vanilla=prepared.vanilla)
    failed = [text.failure for text in written.texts if text.failure is not None]
    if len(failed) == len(written.texts):
        raise InputError(
            f"no text could be written: {failed[0]}",
            expected="prompts that fit the model's context together with the new tokens",
            fix="shorten the prompt, or ask for fewer tokens",
        )
    if failed:
        print_warning(f"{len(failed):,} of {len(written.texts):,} texts failed: {failed[0]}")
        raise typer.Exit(PARTIAL)


def _show(text: WrittenText, *, with_vanilla: bool) -> None:
    from evenhand.cli.console import output

    def line(word: str, written: str | None) -> None:
        said = f"[{text.failure}]" if written is None else text.prompt + written
        output.print(f"{word}{said}", highlight=False, markup=False, soft_wrap=True)

    if with_vanilla:
        line("vanilla:   ", text.vanilla)
    line("mitigated: " if with_vanilla else "", text.text)
