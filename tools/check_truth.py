"""Prints the truth tests of sized classes, and exits with 1 if there are any.

An empty Reader is false, but it is a Reader: `if reader` passes over the damage that has emptied
it. `if reader is not None` and `if len(reader)` say which of the two is meant.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from mypy.build import build
from mypy.inspections import find_by_location
from mypy.main import process_options
from mypy.types import Instance, Type, UnionType, get_proper_type


def tested_in(module: ast.Module) -> Iterator[ast.expr]:
    """Yields the expressions of which only the truth is asked."""
    for node in ast.walk(module):
        if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp):
            yield from operands(node.test)
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                yield from operands(condition)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from operands(node.operand)
        elif isinstance(node, ast.BoolOp):
            for value in node.values[:-1]:
                yield from operands(value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "bool":
            yield from node.args


def operands(condition: ast.expr) -> Iterator[ast.expr]:
    if isinstance(condition, ast.BoolOp):
        for value in condition.values:
            yield from operands(value)
    else:
        yield condition


def sized_classes(of: Type | None) -> Iterator[str]:
    """Yields the classes of this project that values of a type may have and that have a length."""
    proper = get_proper_type(of)
    if isinstance(proper, UnionType):
        for item in proper.items:
            yield from sized_classes(item)
    elif isinstance(proper, Instance):
        methods = {base.fullname for base in proper.type.mro if "__len__" in base.names}
        if any(each.startswith("tfrfast.") for each in methods):
            yield proper.type.name


def breaches(arguments: list[str]) -> Iterator[str]:
    """Yields a line for each truth test of a sized class in mypy's packages and files."""
    sources, options = process_options(arguments, require_targets=False)
    options.export_types = options.preserve_asts = True
    options.incremental = False  # unchanged modules would have no types
    checked = build(sources, options)
    yield from checked.errors
    for source in sources:
        tree = checked.files[source.module]
        module = ast.parse(Path(tree.path).read_text(encoding="utf-8"))
        for node in tested_in(module):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            found = find_by_location(
                tree, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
            )
            assert found is not None, f"mypy sees other expressions in {tree.path} than ast"
            for name in sized_classes(checked.types.get(found)):
                yield (
                    f"{tree.path}:{node.lineno}: {ast.unparse(node)!r} may be an empty {name}, "
                    "which is false: compare it with None, or take its len()"
                )


def main() -> int:
    found = sorted(set(breaches(sys.argv[1:])))
    print("\n".join(found) or "truth tests: none of a class that has a length")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
