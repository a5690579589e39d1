"""Writes docs/api.md from the docstrings of public names. `--check`: exits 1 if it would change.

Python signatures are read from the sources, so that nothing but NumPy is imported. Those of the
native module come from its stub, and their docstrings come from the module itself.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tfrfast import _native

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tfrfast"
OUT = ROOT / "docs" / "api.md"

HEAD = """# API reference

<!-- Written by tools/api_reference.py from the docstrings: change those and run `make api`. -->

`import tfrfast as tfr`. What follows a bare `*` is keyword-only.

"""

# Packages whose public names are not those of tfrfast itself, and how their part begins.
ADAPTERS = {
    "tfrfast.torch": """# tfrfast.torch

`import tfrfast.torch`, which imports PyTorch: see [PyTorch](pytorch.md).
""",
    "tfrfast.grain": """# tfrfast.grain

`import tfrfast.grain`, which imports Grain and JAX: see [Grain](grain.md).
""",
    "tfrfast.jax": """# tfrfast.jax

`import tfrfast.jax`, which imports JAX: see [JAX](jax.md).
""",
}

Definition = ast.ClassDef | ast.FunctionDef


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def source_of(module: str) -> Path:
    place = ROOT / Path(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def definitions(tree: ast.Module) -> dict[str, Definition]:
    return {each.name: each for each in tree.body if isinstance(each, Definition)}


STUB = definitions(parse(PACKAGE / "_native.pyi"))


def public_names(package: str) -> dict[str, str]:
    """Each public name, sorted, and the module that defines it."""
    tree = parse(source_of(package))
    origin: dict[str, str] = {}
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            origin |= {alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "__all__":
                names += ast.literal_eval(node.value)
            elif node.targets[0].id == "_ON_USE":
                on_use = ast.literal_eval(node.value)
                origin |= on_use
                names += list(on_use)
    return {name: origin[name] for name in sorted(names, key=str.lower)}


def define(name: str, module: str) -> tuple[Definition, dict[str, Definition]]:
    """The definition of `name`, found through re-exports, and all definitions in its module."""
    while True:
        if module == "tfrfast._native":
            return STUB[name], STUB
        tree = parse(source_of(module))
        here = definitions(tree)
        if name in here:
            return here[name], inherited(here[name], tree) | here
        if (origin := imported_from(name, tree)) is None:
            raise LookupError(f"{module} does not define {name}.")
        module = origin


def imported_from(name: str, tree: ast.Module) -> str | None:
    """Which module of the package `name` comes from."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return node.module
    return None


def inherited(node: Definition, tree: ast.Module) -> dict[str, Definition]:
    """What the modules of its base classes define."""
    found: dict[str, Definition] = {}
    for base in map(ast.unparse, node.bases if isinstance(node, ast.ClassDef) else []):
        module = imported_from(base, tree)
        if module is not None and module.startswith("tfrfast"):
            found |= define(base, module)[1]
    return found


def signature(function: ast.FunctionDef, *, is_method: bool) -> str:
    """The names and defaults. Types are in the stubs and the sources."""
    arguments = ast.parse(ast.unparse(function)).body[0].args  # type: ignore[attr-defined]
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        each.annotation = None
    for each in (arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    if is_method and arguments.args:
        arguments.args.pop(0)
    return f"({ast.unparse(arguments)})"


def is_property(function: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in function.decorator_list)


def methods(
    node: ast.ClassDef, here: dict[str, Definition], native: object = None
) -> Iterator[tuple[str, str, str]]:
    """(name, signature, docstring) of public methods and properties, with those of bases last.

    `native` is the class of the native module whose docstrings belong to a stub's.
    """
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            text = ast.get_docstring(each)
            if here is STUB:
                text = native_doc(getattr(native, each.name))
            if text:
                shown = "" if is_property(each) else signature(each, is_method=True)
                yield each.name, shown, text
    for base in node.bases:
        written = ast.unparse(base)
        if written.startswith("_native."):
            name = written.removeprefix("_native.")
            base_node, native = STUB[name], getattr(_native, name)
            assert isinstance(base_node, ast.ClassDef)
            yield from methods(base_node, STUB, native)
        elif isinstance(parent := here.get(written), ast.ClassDef):
            yield from methods(parent, here, native)


def native_doc(value: object) -> str:
    """The docstring without the signature that pybind11 puts in front."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return re.sub(r"\A\w+\(.*\) -> .*\n+", "", text)


def fields(node: ast.ClassDef) -> list[str]:
    """The fields of a NamedTuple or a dataclass, with their defaults."""
    is_record = any("NamedTuple" in ast.unparse(base) for base in node.bases) or any(
        "dataclass" in ast.unparse(each) for each in node.decorator_list
    )
    if not is_record:
        return []
    return [
        f"{each.target.id}={ast.unparse(each.value)}" if each.value else each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]


def constructor(node: ast.ClassDef) -> str:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return signature(each, is_method=True)
    return f"({', '.join(fields(node))})" if fields(node) else ""


def as_markdown(docstring: str) -> str:
    """`Args:` becomes a list; everything else is Markdown already."""
    lines = []
    in_arguments = False
    for line in docstring.splitlines():
        if line == "Args:":
            in_arguments = True
            lines.append("")
        elif in_arguments and (match := re.fullmatch(r"  (\w[\w, ]*): (.*)", line)):
            names = ", ".join(f"`{name}`" for name in match[1].split(", "))
            lines.append(f"- {names}: {match[2]}")
        elif in_arguments and line.startswith("    "):
            lines.append(f"  {line.strip()}")
        else:
            in_arguments = in_arguments and not line
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def entry(name: str, module: str, prefix: str = "") -> str:
    node, here = define(name, module)
    if isinstance(node, ast.FunctionDef):
        shown = signature(node, is_method=False)
        text = native_doc(getattr(_native, name)) if here is STUB else ast.get_docstring(node)
        return f"## `{prefix}{name}{shown}`\n\n{as_markdown(text or '')}\n"
    text = native_doc(getattr(_native, name)) if here is STUB else ast.get_docstring(node)
    parts = [f"## `{prefix}{name}{constructor(node)}`\n\n{as_markdown(text or '')}\n"]
    seen = set()
    for method, shown, method_text in methods(node, here, getattr(_native, name, None)):
        if method not in seen:
            seen.add(method)
            parts.append(f"**`.{method}{shown}`** {as_markdown(method_text)}\n")
    return "\n".join(parts)


def reference() -> str:
    parts = [entry(name, module) for name, module in public_names("tfrfast").items()]
    for package, head in ADAPTERS.items():
        names = public_names(package).items()
        parts += [head, *(entry(name, module, f"{package}.") for name, module in names)]
    return HEAD + "\n".join(parts)


def main() -> int:
    text = reference()
    if "--check" in sys.argv[1:]:
        if not OUT.exists() or OUT.read_text(encoding="utf-8") != text:
            print(f"{OUT} is not what the docstrings say: `make api` writes it.")
            return 1
        return 0
    OUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
