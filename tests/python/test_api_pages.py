"""The API pages list every public name. Each name has a description and an example."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "api"

if not PAGES.exists():
    pytest.skip(f"there is no {PAGES}: run the tests in a checkout", allow_module_level=True)


# Results that only functions construct. The page of the function shows them.
RESULTS = {
    "tfrfast.columns.pictures.Pictures",
    "tfrfast.jobs.comparing.differences.ChangedFeature",
    "tfrfast.jobs.comparing.differences.Differences",
    "tfrfast.jobs.copying.Copied",
    "tfrfast.jobs.deleting.delete.Deleted",
    "tfrfast.jobs.exporting.Exported",
    "tfrfast.jobs.shuffling.publication.Shuffled",
    "tfrfast.jobs.number_stats.NumberStats",
    "tfrfast.jobs.number_stats.Statistics",
    "tfrfast.jobs.verifying.Verified",
    "tfrfast.keys.keyed.Keyed",
    "tfrfast.loading.loader.LoaderStats",
    "tfrfast.loading.timeline.Act",
    "tfrfast.loading.timeline.Timeline",
    "tfrfast.reader.Location",
    "tfrfast.reader.Shard",
    "tfrfast.reader.Skipped",
    "tfrfast.tables.scanning.Scan",
    "tfrfast.tfds_folder.tfds.TfdsSplit",
}


def adapters() -> Iterator[tuple[str, list[str]]]:
    """Packages with names of their own, such as tfrfast.torch, and these names."""
    others = {module.split(".")[1] for module in tfr._MODULES.values()}
    for module in [*ROOT.glob("tfrfast/*/__init__.py"), *ROOT.glob("tfrfast/[a-z]*.py")]:
        package = module.parent.name if module.name == "__init__.py" else module.stem
        if package in others or package.startswith(("_", "keras")):
            continue
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield package, ast.literal_eval(node.value)


def test_the_api_pages_name_every_public_name_once() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md")))
    named = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    public = [f"tfrfast.{name}" for name in tfr._MODULES]
    found = dict(adapters())
    assert {"torch", "jax", "grain", "polars", "ray"} <= set(found)
    public += [f"tfrfast.{package}.{name}" for package, names in found.items() for name in names]
    assert sorted(name for name in named if name not in RESULTS) == sorted(public)
    assert sorted(set(named) & RESULTS) == sorted(RESULTS)
    for result in RESULTS:
        module, _, name = result.rpartition(".")
        assert inspect.isclass(getattr(importlib.import_module(module), name))


def test_the_native_names_say_the_same_in_the_stub_and_in_the_module() -> None:
    """The site is made from the stub, without a compiler. help() shows the module's docstrings."""
    stub = ast.parse((ROOT / "tfrfast" / "_native.pyi").read_text(encoding="utf-8"))
    public = {name for name, module in tfr._MODULES.items() if module == "tfrfast._native"}
    nodes = {node.name: node for node in stub.body if getattr(node, "name", "") in public}
    pairs = [(node, getattr(tfr, name)) for name, node in nodes.items()]
    for node in nodes.values():
        for member in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("__"):
                pairs.append((member, getattr(getattr(tfr, node.name), member.name)))
    assert set(nodes) == public
    assert len(pairs) > len(public)
    for node, value in pairs:
        # pybind11 puts the signature in front.
        said = re.sub(r"\A\w+\(.*\) -> .*\n+", "", inspect.cleandoc(value.__doc__))
        assert (ast.get_docstring(node) or "").split() == said.split(), node.name


SHOWN = [
    name
    for name in tfr.__all__
    if not (isinstance(getattr(tfr, name), type) and issubclass(getattr(tfr, name), Exception))
]


@pytest.mark.parametrize("name", SHOWN)
def test_a_public_name_has_an_example_that_runs(name: str) -> None:
    value: Any = getattr(tfr, name)
    text = inspect.getdoc(value) or ""
    quoted = re.search(r"^(    |>>> )", text, re.MULTILINE)
    assert quoted, f"{name} has no example in its docstring"
    examples = doctest.DocTestParser().get_doctest(
        text, {"tfr": tfr, "np": np}, name, inspect.getsourcefile(tfr), 0
    )
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not told, "".join(told)
