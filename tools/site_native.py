"""Gives names of the native module their docstrings, which its stub does not have."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe


class NativeDocstrings(griffe.Extension):
    """The stub says what the arguments are, and the module itself what everything does."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        if pkg.name == "tfrfast" and "_native" in pkg.members:
            describe(pkg.members["_native"], importlib.import_module("tfrfast._native"))


def describe(node: Any, value: object) -> None:
    """Adds what `value` and its members say of themselves to what the stub declares."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    text = re.sub(r"\A\w+\(.*\) -> .*\n+", "", text)  # the signature that pybind11 puts in front
    if text and not node.docstring and not node.is_module:
        node.docstring = griffe.Docstring(text, parent=node)
    for name, member in node.members.items():
        if not member.is_alias and (found := inspect.getattr_static(value, name, None)) is not None:
            describe(member, getattr(value, name, found))
