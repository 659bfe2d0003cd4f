"""The regard suite: prefix templates in bias contexts, filled with demographics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import Group, Mention, Prompt, SuiteInfo
from evenhand.core.toml import StrictModel, read_model
from evenhand.suites.templates import Misfit, find_axis_misfits, find_repeated

_MOST_PROMPTS: Final = 1_000_000
_FIX: Final = "fix the file; `evenhand show regard` shows the format"


class Demographic(StrictModel):
    """A group, and the words that stand for it in a template and are masked afterwards."""

    name: str
    surface: str


class AxisGroups(StrictModel):
    """Demographics to compare, one of them the baseline."""

    name: str
    baseline: str = ""
    groups: tuple[Demographic, ...] = ()


class BiasContext(StrictModel):
    """A bias context: templates about one side of life."""

    name: str
    templates: tuple[str, ...] = ()


class RegardHeader(StrictModel):
    """The name of the suite, and the parts of the published one that it keeps."""

    name: str = "regard"
    version: str = "1"
    placeholder: str = "XYZ"
    citation: str = ""
    published: Literal["all", "contexts", "axes", "none"] = "all"


class RegardFile(StrictModel):
    """The contents of a file."""

    suite: RegardHeader = RegardHeader()
    contexts: tuple[BiasContext, ...] = ()
    axes: tuple[AxisGroups, ...] = ()


def merge_files(published: RegardFile, own: RegardFile, path: Path) -> RegardFile:
    """The published file with a user's added to it, checked as a whole."""
    keep = own.suite.published
    contexts: dict[str, BiasContext] = {}
    for context in (*(published.contexts if keep in ("all", "contexts") else ()), *own.contexts):
        earlier = contexts.get(context.name, BiasContext(name=context.name)).templates
        contexts[context.name] = BiasContext(name=context.name, templates=(*earlier, *context.templates))
    axes: dict[str, AxisGroups] = {}
    for axis in (*(published.axes if keep in ("all", "axes") else ()), *own.axes):
        before = axes.get(axis.name, AxisGroups(name=axis.name))
        axes[axis.name] = AxisGroups(
            name=axis.name, baseline=axis.baseline or before.baseline, groups=(*before.groups, *axis.groups)
        )
    header = own.suite.model_copy(update={"citation": own.suite.citation or published.suite.citation})
    whole = RegardFile(suite=header, contexts=tuple(contexts.values()), axes=tuple(axes.values()))
    for problem, accepted in _find_misfits(whole):
        raise InputError(f"{path.name}: {problem}", expected=accepted, fix=_FIX)
    return whole


def _find_misfits(file: RegardFile) -> Iterator[Misfit]:
    """The problems of a file and what is expected instead, in the order in which to fix them."""
    if not file.contexts:
        yield "there is no context", "at least one context with templates"
    if not file.axes:
        yield "there is no axis", "at least one axis with two groups"
    for context in file.contexts:
        yield from _context_misfits(context, file.suite.placeholder)
    for axis in file.axes:
        yield from _axis_misfits(axis)
    templates = sum(len(context.templates) for context in file.contexts)
    prompts = templates * sum(len(axis.groups) for axis in file.axes)
    if prompts > _MOST_PROMPTS:
        yield f"the templates make {prompts:,} prompts", f"at most {_MOST_PROMPTS:,}"


def _context_misfits(context: BiasContext, placeholder: str) -> Iterator[Misfit]:
    who = f"the context {context.name!r}"
    if not context.name.strip():
        yield "a context has no name", "a name such as leadership"
    if not context.templates:
        yield f"{who} has no template", "one template or more"
    for template in context.templates:
        if not template.strip():
            yield f"{who} has an empty template", f"text such as {placeholder!r} and words after it"
        elif placeholder not in template.split():
            yield (
                f"the template {template!r} of {who} has no slot for the demographic",
                f"{placeholder} as a word, such as '{placeholder} was known for'",
            )
    for template in find_repeated(context.templates):
        yield f"{who} has {template!r} twice", "each template once"


def _axis_misfits(axis: AxisGroups) -> Iterator[Misfit]:
    if not axis.name.strip():
        yield "an axis has no name", "a name such as religion"
    yield from find_axis_misfits(axis.name, [group.name for group in axis.groups], axis.baseline)
    for group in axis.groups:
        if not group.surface.strip():
            yield (
                f"the group {group.name!r} of axis {axis.name!r} leaves the slot empty",
                "a surface, the words that stand for the group, such as 'The woman'",
            )


STRATUM = "context"
"""The key of a prompt's ``meta`` that names its bias context."""


class RegardSuite:
    """60 prompts: 2 contexts x 5 templates x 6 demographics (Sheng et al. 2019, Table 2), or a user's own.

    Each group has one prompt per template, so its clusters are its prompts; the prompts of one template share
    their cluster's name over groups, which pairs the groups by template. The context (respect, occupation) is
    in ``meta`` and a stratum of every comparison. The demographic is masked as XYZ, at the start and wherever
    it is repeated.

    Args:
        name: A TOML file that adds contexts, templates, axes or demographics, as ``--suite regard:FILE``
            gives it (format: ``regard_file``). Published prompts keep their ids, so their cached texts
            are reused.
    """

    def __init__(self, *, name: str = "") -> None:
        path = asset_path("suites", "regard.toml")
        published = read_model(path, RegardFile, fix=_FIX)
        own = Path(name) if name else None
        self._file = published
        if own:
            # Consistency is checked after merging.
            self._file = merge_files(published, read_model(own, RegardFile, fix=_FIX), own)
        head = self._file.suite
        self.info = SuiteInfo(
            name=head.name,
            version=head.version,
            summary="How a model writes about a person known only by gender, race or orientation.",
            baselines={axis.name: axis.baseline for axis in self._file.axes},
            metrics=("regard", "sentiment"),
            cluster="template",
            citation=head.citation,
            licence="CC BY 4.0; templates quoted from the paper",
            digest=digest([file_digest(path), file_digest(own)]) if own else file_digest(path),
            notes=(
                f"{sum(1 for _ in self._templates())} templates in {len(self._file.contexts)} contexts: the "
                "prompts do not show how a model writes about a group outside these.",
            ),
            strata=(STRATUM,),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by axis, group, context and template."""
        placeholder = self._file.suite.placeholder
        for axis in self._file.axes:
            for group in axis.groups:
                for template_id, context, template in self._templates():
                    yield Prompt.create(
                        self.info.name,
                        template.replace(placeholder, group.surface),
                        groups=(Group(axis.name, group.name),),
                        cluster=template_id,
                        template_id=template_id,
                        mentions=(Mention(group.surface, mask="XYZ"),),
                        fills={placeholder: group.surface},
                        meta={STRATUM: context},
                    )

    def find_context(self, masked: str) -> str:
        """The bias context whose template a masked text begins with; empty if none matches.

        >>> RegardSuite().find_context("XYZ worked as a nurse.")
        'occupation'
        """
        return self.find_template(masked).rpartition("-")[0]

    def find_template(self, masked: str) -> str:
        """The id of the template a masked text begins with, such as ``respect-2``; empty if none matches."""
        for template_id, _, template in self._templates():
            if masked.startswith(template) and not masked[len(template) :][:1].isalnum():
                return template_id
        return ""

    def _templates(self) -> Iterator[tuple[str, str, str]]:
        """The id, context and text of every template."""
        for context in self._file.contexts:
            for number, template in enumerate(context.templates, start=1):
                yield f"{context.name}-{number}", context.name, template
