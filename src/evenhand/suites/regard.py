"""The regard suite: prefix templates in bias contexts, filled with demographics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evenhand.core.assets import asset
from evenhand.core.digests import digest, file_digest
from evenhand.core.records import Group, Mention, Prompt, SuiteInfo
from evenhand.suites.regard_file import Context, joined, read_regard

STRATUM = "context"
"""The key of a prompt's ``meta`` that names its bias context."""


class RegardSuite:
    """60 prompts: 2 contexts x 5 templates x 6 demographics (Sheng et al. 2019, Table 2), or a user's own.

    Each group has one prompt a template, so its clusters are its prompts; the prompts of one template share
    their cluster's name over groups, which pairs the groups by template. The context (respect, occupation) is
    in ``meta`` and a stratum of every comparison. The demographic, at the start and wherever it is said
    again, is masked as XYZ.

    Args:
        name: A TOML file that adds contexts, templates, axes or demographics, as ``--suite regard:FILE``
            gives it (format: ``regard_file``). Published prompts keep their ids, so their texts are found
            again.
    """

    def __init__(self, *, name: str = "") -> None:
        path = asset("suites", "regard.toml")
        published = read_regard(path)
        own = Path(name) if name else None
        self._file = joined(published, read_regard(own), own) if own else published
        head = self._file.suite
        self.info = SuiteInfo(
            name=head.name,
            version=head.version,
            summary="How a model goes on about a person known only by gender, race or orientation.",
            baselines={axis.name: axis.baseline for axis in self._file.axes},
            metrics=("regard", "sentiment"),
            cluster="template",
            citation=head.citation,
            licence="CC BY 4.0; templates quoted from the paper",
            digest=digest([file_digest(path), file_digest(own)]) if own else file_digest(path),
            notes=(
                f"{len(self._templates())} templates in {len(self._file.contexts)} contexts: the prompts do "
                "not tell how a model writes of a group outside these.",
            ),
            strata=(STRATUM,),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by axis, group, context and template."""
        for axis in self._file.axes:
            for group in axis.groups:
                for context in self._file.contexts:
                    yield from self._filled(Group(axis.name, group.name), group.surface, context)

    def context_of(self, masked: str) -> str:
        """The bias context whose template a masked text begins with; empty where none fits.

        >>> RegardSuite().context_of("XYZ worked as a nurse.")
        'occupation'
        """
        return self.template_of(masked).rpartition("-")[0]

    def template_of(self, masked: str) -> str:
        """The id of the template a masked text begins with, such as ``respect-2``; empty where none fits."""
        for context in self._file.contexts:
            for number, template in enumerate(context.templates, start=1):
                if masked.startswith(template) and not masked[len(template) :][:1].isalnum():
                    return f"{context.name}-{number}"
        return ""

    def _filled(self, group: Group, surface: str, context: Context) -> Iterator[Prompt]:
        placeholder = self._file.suite.placeholder
        for number, template in enumerate(context.templates, start=1):
            template_id = f"{context.name}-{number}"
            yield Prompt.create(
                self.info.name,
                template.replace(placeholder, surface),
                groups=(group,),
                cluster=template_id,
                template_id=template_id,
                mentions=(Mention(surface, mask="XYZ"),),
                fills={placeholder: surface},
                meta={STRATUM: context.name},
            )

    def _templates(self) -> list[str]:
        return [template for context in self._file.contexts for template in context.templates]
