"""Options of public functions: each is declared once, with its type, default, bounds and help text.

A public function takes ``**options: Unpack[SomeOptions]``. A field of that typed dictionary is
``name: Annotated[type, Option(...)]``; the keyword of the function, the option of its command, the
setting in ``evenhand.toml`` and the line in the reference are all derived from it. Bases compose options.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypedDict, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from evenhand.core.errors import InputError, UnknownKeywordError

SETTINGS_FILE: Final = "config"
"""The option that names a settings file: a function with this option reads its settings from that file."""
_BOUNDS: Final = {"ge": "from", "gt": "above", "le": "at most", "lt": "below"}
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Option:
    """The meaning and constraints of an option, besides its type."""

    help: str
    _: KW_ONLY
    default: object = None
    """The value if none is given, not even in the settings file; booleans default to False."""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    parse: Callable[[Any], object] | None = None
    """Converts a command-line value to the declared type; values of that type pass unchanged."""
    section: str = ""
    """Section of the settings file; empty for an option that is not in the file."""
    name: str = ""
    """Name of the keyword; filled in, as is the type, from the field that is declared."""
    kind: Any = None
    key: str = ""
    """Key in the section, if it differs from the name."""
    flag: str = ""
    """Name on the command line, if it differs from the name."""
    panel: str = ""
    """The help heading that lists the option."""
    complete: str = ""
    """Kind of names for shell completion, such as ``models``."""
    flag_type: Any = None
    """The type on the command line, if it cannot be derived from the Python type."""
    is_required: bool = False
    """Required on the command line, because Python has a positional argument for it."""
    has_negation: bool = False
    """For booleans: also offer ``--no-NAME``, which overrides the settings file."""
    has_flag: bool = True
    """False for options that only Python can set."""

    @property
    def text(self) -> str:
        """The help text with the default."""
        if self.default is None or isinstance(self.default, bool) or self.default in ((), {}):
            return self.help
        default = ", ".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        return f"{self.help.removesuffix('.')} (default {default})."

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The accepted types, without None."""
        union = get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)
        return tuple(kind for kind in union if kind is not NoneType)

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds, under the names that Python's operators and Pydantic use."""
        return {name: bound for name in _BOUNDS if (bound := getattr(self, name)) is not None}

    def check(self, value: object) -> object:
        """The value or its default; raises an error if it is out of bounds or not one of the choices."""
        if value is None:
            return self.default
        if self.kinds == (bool,) and isinstance(value, str):
            # In Python any non-empty text is true, even "no".
            raise InputError(
                f"{self.name} {value!r}",
                expected="True or False",
                fix=f"write {self.name}=True, or leave it out",
            )
        choices = [choice for kind in self.kinds if get_origin(kind) is Literal for choice in get_args(kind)]
        if choices and value not in choices:
            raise InputError(f"{self.flag} {value!r}", expected=", ".join(choices), fix="use one of these")
        bounds = self.bounds
        # Comparisons with NaN are always false.
        if isinstance(value, int | float) and not all(
            getattr(operator, name)(value, bound) for name, bound in bounds.items()
        ):
            default, least = self.default, self.ge
            size = "a larger" if least is not None and value < least else "another"
            fix = f"give {self.flag} {size} number" if default is None else f"try {self.flag} {default}"
            words = [f"{_BOUNDS[name]} {bound:g}" for name, bound in bounds.items()]
            expected = f"{least:g} or more" if list(bounds) == ["ge"] else " and ".join(words)
            raise InputError(f"{self.flag} {value:g} is out of range", expected=expected, fix=fix)
        return value


@cache
def fields_of(options: type) -> Mapping[str, Option]:
    """The options that a typed dictionary declares, by name."""
    fields: dict[str, Option] = {}
    for name, hint in get_type_hints(options, include_extras=True).items():
        kind, option, *_ = (*get_args(hint), None, None)
        if not isinstance(option, Option):
            raise TypeError(f"{options.__name__}.{name} is not Annotated[type, Option(...)]")
        fields[name] = replace(
            option,
            name=name,
            kind=kind,
            key=option.key or name,
            flag="--" + (option.flag or name).replace("_", "-"),
            default=False if kind is bool and option.default is None else option.default,
        )
    return fields


def checks_options(function: F) -> F:
    """The function with its options validated: names are known, values within bounds, defaults filled in.

    Options that the settings file may set get no default here: a function that reads the file resolves
    them itself.
    """

    @wraps(function)
    def checked(*args: object, **given: object) -> object:
        accepted = keywords_of(function)
        if unknown := next((name for name in given if name not in accepted), None):
            near = get_close_matches(unknown, accepted, n=1)
            raise UnknownKeywordError(
                f"{function.__name__}() has no argument {unknown!r}",
                expected=", ".join(accepted),
                fix=f"did you mean {near[0]!r}?" if near else "use one of these",
            )
        fields = fields_of(options_of(function))
        for name, field in fields.items():
            if given.get(name) is not None and field.parse:
                given[name] = field.parse(given[name])
            if not field.section or SETTINGS_FILE not in fields:
                given[name] = field.check(given.get(name))
        return function(*args, **given)

    return cast(F, checked)


@cache
def keywords_of(function: Callable[..., object]) -> tuple[str, ...]:
    """The keywords of a function: its parameters and the options it unpacks."""
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(function).parameters.values()
    own = [parameter.name for parameter in parameters if parameter.kind not in several]
    return (*own, *fields_of(options_of(function)))


class NoOptions(TypedDict):
    """For functions whose parameters are all in the signature."""


@cache
def options_of(function: Callable[..., object]) -> type:
    """The typed dictionary that a function unpacks its keyword arguments to; an empty one if none."""
    function = inspect.unwrap(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            # By name: other annotations may refer to imports that exist for type checkers only.
            name = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
            return cast(type, function.__globals__[name])
    return NoOptions


def pairs(what: str, example: str, *, last: bool = False) -> Callable[[Any], Mapping[str, str]]:
    """A parser of ``NAME=VALUE`` pairs; a mapping is returned unchanged.

    Args:
        what: Name of the pair in the error, such as ``--baseline``.
        example: What is accepted.
        last: Whether to split at the last ``=``, for names that may contain one.
    """

    def parse(given: Mapping[str, str] | Sequence[str]) -> Mapping[str, str]:
        if isinstance(given, Mapping):
            return given
        if not isinstance(given, str | Sequence):
            raise InputError(f"{what} {given!r}", expected=f"{example}, or a mapping")
        divided: dict[str, str] = {}
        for pair in [given] if isinstance(given, str) else given:
            name, equals, value = pair.rpartition("=") if last else pair.partition("=")
            if not (name and equals and (value or last)):
                form = example.partition(",")[0]
                fix = f"write {what} {form}" if what.startswith("--") else f"write {form}"
                raise InputError(f"{what} {pair!r} is not of the form {form}", expected=example, fix=fix)
            divided[name] = value
        return divided

    return parse


def split_names(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names from a repeated or comma-separated option; None if it was not given."""
    if names is None:
        return None
    parts = names.split(",") if isinstance(names, str) else ",".join(names).split(",")
    return tuple(filter(None, map(str.strip, parts))) or None
