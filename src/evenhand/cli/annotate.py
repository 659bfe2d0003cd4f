"""``evenhand annotate``."""

from __future__ import annotations

import typer

from evenhand.cli import answers, study

app = typer.Typer(help="Human labels: what to ask about, and what was answered.", no_args_is_help=True)
app.command("init")(study.init_command)
app.command("invite")(study.invite_command)
app.command("serve")(study.serve_command)
app.command("status")(study.status_command)
app.command("forget")(study.forget_command)
app.command("agreement")(answers.agreement_command)
app.command("ratings")(answers.ratings_command)
app.command("export")(answers.export_command)
app.command("import")(answers.import_command)
app.command("sample")(answers.sample_command)
app.command("settle")(answers.settle_command)


@app.callback()
def _options() -> None:
    """Human labels: what to ask about, and what was answered."""
