"""The layer rule in Python: imports point down only, and frameworks are imported on use."""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The modules and folders of the Python package, from the ground up.
PYTHON_ORDER = [
    "_native",
    "errors",
    "base",
    "storage",
    "columns",
    "messages",
    "features",
    "keys",
    "reader",
    "order",
    "example",
    "writing",
    "loading",
    "tables",
    "jobs",
    "steps",
    "tfds_folder",
    "tensorflow",
    "keras",
    "torch",
    "jax",
    "grain",
    "polars",
    "ray",
    "startup",
    "__init__",
    "bench",
    "cli",
    "__main__",
]

# Modules that every Python module may import at top level.
ALWAYS_IMPORTED = set(sys.stdlib_module_names) | {"numpy", "tfrfast"}
FRAMEWORKS = ("tensorflow", "keras", "torch", "jax", "grain", "polars", "ray", "pyarrow", "duckdb")


def top_level_imports(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the imports that run with the module: not in functions, nor under TYPE_CHECKING."""
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def import_breaches(path: Path) -> Iterator[tuple[int, str]]:
    """Yields imports at top level that are not allowed. A framework is allowed in its own adapter,
    which carries its name: tfrfast/tensorflow/*.py.
    """
    names = {part.strip("_") for part in path.relative_to(ROOT).with_suffix("").parts}
    allowed = ALWAYS_IMPORTED | names.intersection(FRAMEWORKS)
    for line, imported in top_level_imports(ast.parse(path.read_text(encoding="utf-8"))):
        if imported.partition(".")[0] not in allowed:
            yield line, f"imports {imported} at top level"


def own_imports(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yields the package's modules that `path` imports, as parts such as ("storage", "paths").

    An import inside a function or for types alone counts like any other. Only a framework's adapter
    may be imported from below, inside a function, so that only its users load it.
    """
    module = ast.parse(path.read_text(encoding="utf-8"))
    package = path.relative_to(ROOT).parent.parts
    at_top = set(top_level_imports(module))
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names = [(alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            source = ".".join((*above, node.module) if node.module else above)
            names = [(source, f"{source}.{alias.name}") for alias in node.names]
        else:
            continue
        for source, name in names:
            parts = tuple(name.split("."))
            if parts[0] != "tfrfast":
                continue
            while not is_module(parts):
                parts = parts[:-1]
            adapter = len(parts) > 1 and parts[1].strip("_") in FRAMEWORKS
            if not adapter or (node.lineno, source) in at_top:
                yield node.lineno, parts[1:] or ("__init__",)


def is_module(parts: tuple[str, ...]) -> bool:
    place = ROOT.joinpath(*parts)
    return place.is_dir() or any(place.with_suffix(each).is_file() for each in (".py", ".pyi"))


def python_order_breaches(path: Path) -> Iterator[tuple[int, str]]:
    own = path.relative_to(ROOT / "tfrfast").with_suffix("").parts[0]
    if own not in PYTHON_ORDER:
        yield 1, f"tfrfast/{own} has no place in PYTHON_ORDER of tools/python_layers.py"
        return
    for line, (other, *_) in own_imports(path):
        if other not in PYTHON_ORDER:
            yield line, f"tfrfast/{other} has no place in PYTHON_ORDER of tools/python_layers.py"
        elif PYTHON_ORDER.index(other) > PYTHON_ORDER.index(own):
            yield line, f"tfrfast/{own} lies below tfrfast/{other} and may not import it"


def circle_in(folder: Path) -> list[str] | None:
    """The modules of a Python package that import each other in a circle, if any do."""
    graph: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.py")):
        imported = (parts for _, parts in own_imports(path) if parts[0] == folder.name)
        graph[path.stem] = {parts[1] if len(parts) > 1 else "__init__" for parts in imported}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]  # each imports the next
    return None


def breaches_in_package() -> Iterator[tuple[Path, int, str]]:
    package = ROOT / "tfrfast"
    for path in sorted(package.rglob("*.py")):
        for line, what in (*import_breaches(path), *python_order_breaches(path)):
            yield path, line, what
    for folder in sorted({path.parent for path in package.glob("*/*.py")}):
        if circle := circle_in(folder):
            yield folder, 1, f"a circle of imports: {' -> '.join(circle)}"
