"""Errors about arguments, as sentences that name the argument and what it takes.

Python's and pybind11's own errors name neither. They become sentences after a call has failed, so
that a call that succeeds is not examined.
"""

from __future__ import annotations

import ast
import functools
import operator
import os
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from tfrfast import _native

__all__ = ["explain_native", "explains_arguments", "refuse_wrong_fields"]

Function = TypeVar("Function", bound=Callable[..., Any])

_PYBIND = re.compile(r"(\w+)\(\): incompatible (function|constructor) arguments\.")
_SIGNATURE = re.compile(r"^    \d+\. .*?(\(.*\))(?: -> .*)?$", re.MULTILINE)
_RAW = TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError
_INTEGER, _NUMBER, _TEXT, _ARRAY = "an integer", "a number", "text", "an array"
_WORDS = {
    "int": _INTEGER,
    "integer": _INTEGER,
    "SupportsIndex": _INTEGER,
    "SupportsInt": _INTEGER,
    "float": _NUMBER,
    "SupportsFloat": _NUMBER,
    "str": _TEXT,
    "bool": "True or False",
    "bytes": "bytes",
    "Buffer": "bytes",
    "PathLike": "a path",
    "Paths": "a path, a URL, a pattern or a list of them",
    "FilePath": "a path or a URL",
    "dict": "a dict",
    "Mapping": "a dict",
    "ArrayLike": _ARRAY,
    "ndarray": _ARRAY,
    "NDArray": _ARRAY,
    "Callable": "a function",
    "NoneType": "None",
    "ArrowTable": "a table",
}
_LISTS = ("Collection", "Iterable", "Sequence", "list", "tuple")


def explains_arguments(function: Function) -> Function:
    """Decorates a public function whose arguments may be wrong in ways that only Python notices."""

    @functools.wraps(function)
    def call(*unnamed: Any, **named: Any) -> Any:
        try:
            return function(*unnamed, **named)
        except _RAW as error:
            if _is_finished(error) or _is_of_others(error):
                raise
            _explain(error, function, unnamed, named)
            raise

    return call  # type: ignore[return-value]


def refuse_wrong_fields(instance: object) -> None:
    """Raises TypeError for a field of a dataclass that does not fit its type."""
    kind: Any = type(instance)
    _refuse_one(vars(instance), _fields_of(kind), vars(sys.modules[kind.__module__]))


@functools.cache
def _fields_of(kind: type) -> dict[str, ast.expr]:
    return _parsed(kind.__annotations__)


def explain_native(refused: TypeError, unnamed: list[Any], named: dict[str, Any]) -> None:
    """Raises a better error if `refused` is pybind11's error about the types of arguments."""
    found = _PYBIND.match(str(refused))
    if found is None:
        return
    if found[2] == "constructor":
        unnamed = unnamed[1:]  # self is in no signature
    given: dict[str, Any] = {}
    for signature in _SIGNATURE.findall(str(refused)):
        types = _types(signature)
        if not named.keys() <= types.keys() or len(unnamed) > len(types):
            return  # a fault of ours
        given = dict(zip(types, unnamed, strict=False)) | named
        _refuse_one(given, types, vars(_native))
    # All types fit, so an integer does not.
    integers = [(name, int(value)) for name, value in given.items() if _is_integer(value)]
    for name, value in sorted(integers, key=lambda item: -abs(item[1])):
        raise ValueError(f"{name} is {value}, which is out of range.") from None
    shown = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in given.items())
    raise TypeError(f"{found[1]}() cannot take {shown}.") from None


def _explain(
    error: Exception, function: Callable[..., Any], unnamed: Any, named: dict[str, Any]
) -> None:
    from inspect import signature  # which takes long to import

    try:
        bound = signature(function).bind(*unnamed, **named)
    except TypeError:
        return  # Python's own error says which argument is missing or unknown
    _refuse_one(bound.arguments, _parsed(function.__annotations__), function.__globals__)
    if not isinstance(error, AttributeError | IndexError) and "unexpected keyword" not in str(
        error
    ):
        kind = ValueError if isinstance(error, ValueError | OverflowError) else TypeError
        text = str(error).rstrip(".")
        raise kind(f"An argument of {function.__name__}() is unusable: {text}.") from error


def _is_finished(error: Exception) -> bool:
    """Our sentences end with a full stop. Python's do not, and one of NumPy's does."""
    text = str(error)
    return text.endswith(".") and not text.startswith("The truth value")


def _is_of_others(error: Exception) -> bool:
    """True for errors of functions and objects that the user gave, and of other libraries."""
    kind = type(error)
    if kind is UnicodeDecodeError or kind.__module__.partition(".")[0] not in ("builtins", "numpy"):
        return True  # nobody would recognise it in other words
    trace, name = error.__traceback__, "tfrfast"
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        trace = trace.tb_next
        if name == "tfrfast":
            continue
        if name != "numpy" and name not in sys.stdlib_module_names:
            return True
    return False


def _refuse_one(
    given: Mapping[str, Any], kinds: Mapping[str, ast.expr], scope: Mapping[str, Any]
) -> None:
    """Raises TypeError for the first argument that does not fit its type."""
    for name, value in given.items():
        if name in kinds and not _fits(value, kinds[name], scope):
            words = dict.fromkeys(_words(kinds[name], scope))
            shown = reprlib.repr(value)
            if isinstance(value, str) and not _is_utf8(value):
                shown += ", which is not UTF-8"
            # An unknown word is of the right type, and so is a number that is not allowed.
            is_value = isinstance(value, str | int) and _takes_values(words)
            kind = ValueError if is_value else TypeError
            raise kind(f"{name} must be {_listed([*words])}, not {shown}.") from None


def _takes_values(words: Iterable[str]) -> bool:
    return any(word == _TEXT or word[0] in '"0123456789' for word in words)


def _listed(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _parsed(annotations: Mapping[str, str]) -> dict[str, ast.expr]:
    return {name: ast.parse(kind, mode="eval").body for name, kind in annotations.items()}


def _text(kind: ast.expr) -> str:
    return kind.id if isinstance(kind, ast.Name) else ast.unparse(kind)


def _types(signature: str) -> dict[str, ast.expr]:
    try:
        function = ast.parse(f"def f{signature}: ...".replace("::", ".")).body[0]
    except SyntaxError:
        return {}
    assert isinstance(function, ast.FunctionDef)
    arguments = (*function.args.args, *function.args.kwonlyargs)
    return {each.arg: each.annotation for each in arguments if each.annotation is not None}


def _parts(kind: ast.expr, scope: Mapping[str, Any]) -> tuple[str, list[ast.expr]]:
    """Returns the type's name without its module, and its arguments. "|" stands for a union."""
    if isinstance(kind, ast.Subscript):
        name, inner = _parts(kind.value, scope)[0], kind.slice
        return (
            "|" if name == "Union" else name,
            inner.elts if isinstance(inner, ast.Tuple) else [inner],
        )
    if isinstance(kind, ast.BinOp):
        return "|", [kind.left, kind.right]
    meaning = _meaning(_text(kind), scope)
    if not hasattr(meaning, "__args__"):
        return _text(kind).rpartition(".")[2], []
    return _parts(ast.parse(str(meaning), mode="eval").body, scope)  # an alias of types


def _fits(value: Any, kind: ast.expr, scope: Mapping[str, Any]) -> bool:
    name, inner = _parts(kind, scope)
    if name == "|":
        return any(_fits(value, each, scope) for each in inner)
    if name == "Literal":
        words = [ast.literal_eval(each) for each in inner]
        return isinstance(value, str | int | float | None) and value in words
    if name in ("Any", "object"):
        return True
    if name == "Annotated":
        return _fits(value, inner[0], scope)
    if name in _LISTS:
        if name != "Iterable" and not hasattr(value, "__len__"):
            return False
        return _is_list(value, inner if name == "tuple" else inner[:1] * _size(value), scope)
    if name in ("Mapping", "dict"):
        return isinstance(value, Mapping) and all(
            _fits(each, type_, scope)
            for item in value.items()
            for each, type_ in zip(item, inner, strict=False)
        )
    check = _CHECKS.get(name)
    if check is not None:
        return check(value)
    known = _meaning(_text(kind), scope)
    if not isinstance(known, type):
        return True
    if getattr(known, "_is_protocol", False):
        return all(hasattr(value, member) for member in _members(known))
    return isinstance(value, known) or (value is None and scope is vars(_native))


def _meaning(name: str, scope: Mapping[str, Any]) -> Any:
    """Returns what a name stands for; None for a name that only type checkers know."""
    if name in scope:
        return scope[name]
    module, _, last = name.rpartition(".")
    return getattr(scope.get(module) or sys.modules.get(module), last, None)


def _members(protocol: type) -> list[str]:
    made = ("__init__", "__subclasshook__")
    return [
        name
        for name, value in vars(protocol).items()
        if isinstance(value, FunctionType | property) and name not in made
    ]


def _size(value: Any) -> int:
    has_size = value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, Sequence)
    return len(value) if has_size else 0


def _is_list(value: Any, kinds: list[ast.expr], scope: Mapping[str, Any]) -> bool:
    if isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable):
        return False
    if not kinds or isinstance(kinds[-1], ast.Constant):  # tuple[int, ...]
        return True
    return len(kinds) == _size(value) and all(
        _fits(each, kind, scope) for each, kind in zip(value, kinds, strict=True)
    )


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_utf8(text: Any) -> bool:
    if isinstance(text, bytes):
        return True
    return isinstance(text, str) and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_array(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # rows of several lengths
        return False


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "int": _is_integer,
    "integer": _is_integer,
    "SupportsIndex": _is_integer,
    "SupportsInt": _is_integer,
    "float": lambda value: isinstance(value, float | int | np.number),
    "SupportsFloat": lambda value: isinstance(value, float | int | np.number),
    "str": _is_utf8,
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "bytes": lambda value: isinstance(value, bytes),
    "Buffer": lambda value: isinstance(value, bytes | bytearray | memoryview | np.ndarray),
    "PathLike": lambda value: isinstance(value, os.PathLike),
    "ArrayLike": _is_array,
    "NDArray": lambda value: isinstance(value, np.ndarray),
    "ndarray": lambda value: isinstance(value, np.ndarray),
    "Callable": callable,
    "None": lambda value: value is None,
    "NoneType": lambda value: value is None,
    "slice": lambda value: isinstance(value, slice),
    "Executor": lambda value: hasattr(value, "submit"),
}


def _words(kind: ast.expr, scope: Mapping[str, Any]) -> list[str]:
    """Returns what the type takes. A union takes each of several."""
    if (alias := _text(kind)) in _WORDS:
        return [_WORDS[alias]]
    name, inner = _parts(kind, scope)
    if name == "|":
        return [word for each in inner for word in _words(each, scope)]
    if name == "Literal":
        return [repr(ast.literal_eval(each)).replace("'", '"') for each in inner]
    if name == "Annotated":
        return _words(inner[0], scope)
    if name == "tuple" and inner:
        return [f"a tuple ({', '.join(word for each in inner for word in _words(each, scope))})"]
    if name in _LISTS and inner and not isinstance(inner[-1], ast.Constant):
        kinds = dict.fromkeys(word for each in inner for word in _words(each, scope))
        many = _listed([*kinds])
        return [f"a list, each {many}"]
    if name in ("Mapping", "dict") and inner:
        both = [_listed([*dict.fromkeys(_words(each, scope))]) for each in inner]
        return [f"a dict of {both[0]} to {both[1]}"]
    return [_WORDS.get(name, "a list" if name in _LISTS else name)]
