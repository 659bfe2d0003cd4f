"""The regard suite: prefix templates in bias contexts, filled with demographics."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import RESERVED_GROUPS, Group, Mention, Prompt, SuiteInfo
from evenhand.core.regular_files import read_text
from evenhand.core.toml import parse_toml
from evenhand.suites.templates import find_repeated

_MOST_PROMPTS: Final = 1_000_000
Published = Literal["all", "contexts", "axes", "none"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Demographic(_Strict):
    """A group, and the words that stand for it in a template and are masked afterwards."""

    name: str
    surface: str


class AxisGroups(_Strict):
    """Demographics to compare, one of them the baseline."""

    name: str
    baseline: str = ""
    groups: tuple[Demographic, ...] = ()


class BiasContext(_Strict):
    """A bias context: templates about one side of life."""

    name: str
    templates: tuple[str, ...] = ()


class RegardHeader(_Strict):
    """What the suite is called, and what of the published one it keeps."""

    name: str = "regard"
    version: str = "1"
    placeholder: str = "XYZ"
    citation: str = ""
    published: Published = "all"


class RegardFile(_Strict):
    """A whole file."""

    suite: RegardHeader = RegardHeader()
    contexts: tuple[BiasContext, ...] = ()
    axes: tuple[AxisGroups, ...] = ()


def read_regard(path: Path) -> RegardFile:
    """The contents of a file, its types checked; whether the parts fit is asked once they are joined."""
    try:
        return RegardFile.model_validate(parse_toml(read_text(path, encoding="utf-8-sig")))
    except OSError as error:
        raise _error(path, f"it cannot be read ({error.strerror})", "a TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _error(path, f"it is no TOML: {error}", "TOML 1.0 in UTF-8") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _error(path, f"{place}: {first['msg']}", "the keys and types of the format") from error


def merge_files(published: RegardFile, own: RegardFile, path: Path) -> RegardFile:
    """The published file with a user's added to it, checked as a whole."""
    keep = own.suite.published
    contexts = published.contexts if keep in ("all", "contexts") else ()
    axes = published.axes if keep in ("all", "axes") else ()
    header = own.suite.model_copy(
        update={"citation": own.suite.citation or published.suite.citation, "published": keep}
    )
    whole = RegardFile(
        suite=header, contexts=_merge_contexts(contexts, own.contexts), axes=_merge_axes(axes, own.axes)
    )
    for came, accepted in _find_misfits(whole):
        raise _error(path, came, accepted)
    return whole


def _merge_contexts(first: Iterable[BiasContext], second: Iterable[BiasContext]) -> tuple[BiasContext, ...]:
    found: dict[str, BiasContext] = {}
    for context in (*first, *second):
        earlier = found.get(context.name, BiasContext(name=context.name)).templates
        found[context.name] = BiasContext(name=context.name, templates=(*earlier, *context.templates))
    return tuple(found.values())


def _merge_axes(first: Iterable[AxisGroups], second: Iterable[AxisGroups]) -> tuple[AxisGroups, ...]:
    found: dict[str, AxisGroups] = {}
    for axis in (*first, *second):
        earlier = found.get(axis.name, AxisGroups(name=axis.name))
        found[axis.name] = AxisGroups(
            name=axis.name,
            baseline=axis.baseline or earlier.baseline,
            groups=(*earlier.groups, *axis.groups),
        )
    return tuple(found.values())


def _find_misfits(file: RegardFile) -> Iterator[tuple[str, str]]:
    """What does not fit, and what would, in the order in which it should be mended."""
    if not file.contexts:
        yield "there is no context", "at least one context with templates"
    if not file.axes:
        yield "there is no axis", "at least one axis with two groups"
    for context in file.contexts:
        yield from _context_misfits(context, file.suite.placeholder)
    for axis in file.axes:
        yield from _axis_misfits(axis)
    made = sum(len(context.templates) for context in file.contexts) * sum(
        len(axis.groups) for axis in file.axes
    )
    if made > _MOST_PROMPTS:
        yield f"the templates make {made:,} prompts", f"at most {_MOST_PROMPTS:,}"


def _context_misfits(context: BiasContext, placeholder: str) -> Iterator[tuple[str, str]]:
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


def _axis_misfits(axis: AxisGroups) -> Iterator[tuple[str, str]]:
    who = f"the axis {axis.name!r}"
    names = [group.name for group in axis.groups]
    if not axis.name.strip():
        yield "an axis has no name", "a name such as religion"
    if len(set(names)) < 2:
        yield f"{who} has {len(set(names))} group(s)", "two groups or more"
    for name in find_repeated(names):
        yield f"the group {name!r} of {who} is there twice", "each group once"
    for group in axis.groups:
        if not group.name.strip() or group.name in RESERVED_GROUPS:
            yield f"{group.name!r} is no name for a group of {who}", "any other name"
        if not group.surface.strip():
            yield (
                f"the group {group.name!r} of {who} leaves the slot empty",
                "a surface, the words that stand for the group, such as 'The woman'",
            )
    if axis.baseline not in (*names, *RESERVED_GROUPS):
        came = f"the baseline {axis.baseline!r} of {who} is not one of its groups"
        yield came if axis.baseline else f"{who} names no baseline", ", ".join(names)


def _error(path: Path, came: str, accepted: str) -> InputError:
    todo = "mend the file; `evenhand show regard` shows the format"
    return InputError(f"{path.name}: {came}", expected=accepted, fix=todo)


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
        path = asset_path("suites", "regard.toml")
        published = read_regard(path)
        own = Path(name) if name else None
        self._file = merge_files(published, read_regard(own), own) if own else published
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
                    yield from self._fill_templates(Group(axis.name, group.name), group.surface, context)

    def find_context(self, masked: str) -> str:
        """The bias context whose template a masked text begins with; empty where none fits.

        >>> RegardSuite().context_of("XYZ worked as a nurse.")
        'occupation'
        """
        return self.find_template(masked).rpartition("-")[0]

    def find_template(self, masked: str) -> str:
        """The id of the template a masked text begins with, such as ``respect-2``; empty where none fits."""
        for context in self._file.contexts:
            for number, template in enumerate(context.templates, start=1):
                if masked.startswith(template) and not masked[len(template) :][:1].isalnum():
                    return f"{context.name}-{number}"
        return ""

    def _fill_templates(self, group: Group, surface: str, context: BiasContext) -> Iterator[Prompt]:
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
