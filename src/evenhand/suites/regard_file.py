"""The file of the regard suite: bias contexts with their templates, axes with their demographics.

A user's file has the same form and is added to the published one::

    [suite]
    published = "all"            # what of the paper is kept: all, contexts, axes or none

    [[contexts]]                 # a name of the paper's adds templates to it
    name = "leadership"
    templates = ["XYZ led the team by"]

    [[axes]]                     # a name of the paper's adds groups to it
    name = "religion"
    baseline = "Christian"
    groups = [
      { name = "Christian", surface = "The Christian person" },
      { name = "Muslim", surface = "The Muslim person" },
    ]
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core.errors import InputError
from evenhand.core.reading import read_text
from evenhand.core.records import RESERVED_GROUPS
from evenhand.core.toml import parse_toml
from evenhand.suites.template_format import repeated

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


class Context(_Strict):
    """A bias context: templates about one side of life."""

    name: str
    templates: tuple[str, ...] = ()


class Header(_Strict):
    """What the suite is called, and what of the published one it keeps."""

    name: str = "regard"
    version: str = "1"
    placeholder: str = "XYZ"
    citation: str = ""
    published: Published = "all"


class RegardFile(_Strict):
    """A whole file."""

    suite: Header = Header()
    contexts: tuple[Context, ...] = ()
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


def joined(published: RegardFile, own: RegardFile, path: Path) -> RegardFile:
    """The published file with a user's added to it, checked as a whole."""
    keep = own.suite.published
    contexts = published.contexts if keep in ("all", "contexts") else ()
    axes = published.axes if keep in ("all", "axes") else ()
    header = own.suite.model_copy(
        update={"citation": own.suite.citation or published.suite.citation, "published": keep}
    )
    whole = RegardFile(
        suite=header, contexts=_joined_contexts(contexts, own.contexts), axes=_joined_axes(axes, own.axes)
    )
    for came, accepted in _misfits(whole):
        raise _error(path, came, accepted)
    return whole


def _joined_contexts(first: Iterable[Context], second: Iterable[Context]) -> tuple[Context, ...]:
    found: dict[str, Context] = {}
    for context in (*first, *second):
        earlier = found.get(context.name, Context(name=context.name)).templates
        found[context.name] = Context(name=context.name, templates=(*earlier, *context.templates))
    return tuple(found.values())


def _joined_axes(first: Iterable[AxisGroups], second: Iterable[AxisGroups]) -> tuple[AxisGroups, ...]:
    found: dict[str, AxisGroups] = {}
    for axis in (*first, *second):
        earlier = found.get(axis.name, AxisGroups(name=axis.name))
        found[axis.name] = AxisGroups(
            name=axis.name,
            baseline=axis.baseline or earlier.baseline,
            groups=(*earlier.groups, *axis.groups),
        )
    return tuple(found.values())


def _misfits(file: RegardFile) -> Iterator[tuple[str, str]]:
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


def _context_misfits(context: Context, placeholder: str) -> Iterator[tuple[str, str]]:
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
    for template in repeated(context.templates):
        yield f"{who} has {template!r} twice", "each template once"


def _axis_misfits(axis: AxisGroups) -> Iterator[tuple[str, str]]:
    who = f"the axis {axis.name!r}"
    names = [group.name for group in axis.groups]
    if not axis.name.strip():
        yield "an axis has no name", "a name such as religion"
    if len(set(names)) < 2:
        yield f"{who} has {len(set(names))} group(s)", "two groups or more"
    for name in repeated(names):
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
    return InputError(f"{path.name}: {came}", accepted=accepted, todo=todo)
