"""A corpus run and a probe run side by side: what ``compare`` does with one of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from evenhand.api.parts import SILENT, Plan
from evenhand.api.render import render
from evenhand.api.result_options import CompareOptions
from evenhand.api.settings import resolve
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.pipeline.association import Associator
from evenhand.store.folder import RunFolder, default_folder, now, stage
from evenhand.store.run import Run

COMMAND = "associate"
"""What the manifest's identity calls it, so that the report knows its page."""


@dataclass(frozen=True, slots=True)
class Associating:
    """A corpus run and a probe run that are ready to be set side by side."""

    corpus: Run
    probe: Run
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        return Plan(
            title="compare a corpus and a classifier",
            lines=(
                f"corpus     {self.corpus.manifest['name']}",
                f"classifier {self.probe.manifest['name']}",
                f"folder     {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Join the tables, correlate, report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            with stage(folder, COMMAND) as record, progress.step("comparing", None):
                folder.manifest.update(
                    command=self.command,
                    name=f"{self.corpus.manifest['name']} and {self.probe.manifest['name']}",
                    execution={},
                    runs=[
                        {
                            "name": run.manifest["name"],
                            "path": str(run.path),
                            "command": run.manifest["command"],
                        }
                        for run in (self.corpus, self.probe)
                    ],
                    view=self.probe.manifest["view"],
                    warnings=[],
                    ended=None,
                )
                for name, table in Associator(level=self.level).tables(self.corpus, self.probe).items():
                    folder.write(name, table)
                    record[name] = table.height
            folder.manifest["ended"] = now()
            folder.save_manifest()
            render(folder.run(), ("html", "json", "md"))
            return folder.run()


@checks_options
def prepare(*runs: Run, **options: Unpack[CompareOptions]) -> Associating:
    """The comparison of one corpus run and one probe run, in whatever order."""
    by_kind = {str(run.manifest["identity"].get("command")): run for run in runs}
    if len(runs) != 2 or set(by_kind) != {"corpus", "probe"}:
        kinds = [str(run.manifest["identity"].get("command")) for run in runs]
        raise InputError(
            f"runs of {', '.join(kinds)}",
            accepted="one corpus run and one probe run",
            todo="compare several corpora by scanning them in one run",
        )
    level, out = resolve(options).options["level"], options["out"]
    identity: dict[str, Json] = {
        "command": COMMAND,
        "corpus": digest(by_kind["corpus"].manifest["identity"]),
        "probe": digest([by_kind["probe"].manifest["identity"], by_kind["probe"].manifest["view"]]),
        "level": level,
    }
    names = "-".join(str(run.manifest["name"]) for run in by_kind.values())
    return Associating(
        corpus=by_kind["corpus"],
        probe=by_kind["probe"],
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder("compare", names, identity),
        command=options["command"] or f"evenhand compare {' '.join(str(run.path) for run in runs)}",
        fresh=options["fresh"],
    )
