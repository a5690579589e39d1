"""Names and defaults of arguments agree all over the public functions and classes."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from record_files import write_rows


def signatures() -> Iterator[tuple[str, dict[str, inspect.Parameter]]]:
    for name in tfr.__all__:
        value = getattr(tfr, name)
        for each in [value, *vars(value).values()] if inspect.isclass(value) else [value]:
            if inspect.isfunction(each) or each is value:
                try:
                    yield f"{name}: {each}", dict(inspect.signature(each).parameters)
                except ValueError:  # of the native module
                    assert not inspect.isfunction(each)


def test_an_argument_means_the_same_everywhere() -> None:
    seen = set()
    for where, parameters in signatures():
        for name, parameter in parameters.items():
            kind = str(parameter.annotation)
            seen.add(name)
            if name == "overwrite":
                assert parameter.default is False, where
            if name == "index" and "self" not in parameters:
                assert "index_folder" in parameters, where
                assert parameter.default in (True, "auto"), where
            if name == "index_folder":
                assert parameter.default is None, where
            if kind == "Paths":
                assert name == "paths", where
            if "Reader" in kind and "Paths" in kind and "tuple" not in kind:
                assert name == "source" or (name in "ab" and {"a", "b"} <= set(parameters)), where
            assert name not in ("filenames", "files", "index_dir"), where
    assert {"overwrite", "index", "index_folder", "paths", "source"} <= seen


def test_what_opens_a_source_takes_the_options_of_a_reader() -> None:
    """Adapters, too, whose frameworks need not be here."""
    found = set()
    for path in Path(tfr.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for each in node.args.args:
                kind = ast.unparse(each.annotation) if each.annotation else ""
                if each.arg == "source" and {"Reader", "Paths"} <= set(kind.split(" | ")):
                    found.add(path.parent.name)
                    passed = {"options", "reader_options"}.intersection(
                        [other.arg for other in node.args.args]
                    )
                    assert passed or (
                        node.args.kwarg and node.args.kwarg.arg == "reader_options"
                    ), (
                        path,
                        node.name,
                    )
    assert {"torch", "grain", "ray", "jobs", "loading", "steps", "tables"} <= found


def test_what_only_tfrfast_needs_is_private() -> None:
    private = {"describe", "encode", "fingerprint", "skips_damage", "with_share", "with_segments"}
    for name in tfr.__all__:
        assert not private.intersection(dir(getattr(tfr, name))), name
    assert len(tfr._MODULES) <= 58


class Index:
    """A number for those who ask for `__index__`, and nothing else."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


Of = Callable[[int], Any]
INTEGERS: dict[str, Callable[[Of], object]] = {
    "Reader": lambda n: tfr.Reader("shard", threads=n(1))[n(2)],
    "locate": lambda n: tfr.Reader("shard").locate(n(3)),
    "Loader": lambda n: tfr.Loader(
        "shard", n(4), seed=n(1), rank=n(0), world=n(2), threads=n(1), prefetch=n(2)
    ),
    "Plan": lambda n: tfr.Plan(tfr.Shuffle(n(3)), n(4), num_records=n(40), start=n(4)).indices(
        n(0), n(1)
    ),
    "BlockShuffle": lambda n: tfr.BlockShuffle(n(4), n(2), n(2), seed=n(1)),
    "Weighted": lambda n: tfr.Weighted([1, 2], n(4), seed=n(2)),
    "Mixture": lambda n: tfr.Mixture({"a": (n(4), 2)}, length=n(6), seed=n(1)).counts(n(0), n(1)),
    "ByTokens": lambda n: tfr.ByTokens(n(50), [10] * 40),
    "DiskCache": lambda n: tfr.DiskCache("cache", n(1 << 30)),
    "ShardedWriter": lambda n: tfr.ShardedWriter(
        "new", num_shards=n(2), compression="GZIP", level=n(1)
    ).abort(),
    "max_bytes": lambda n: tfr.ShardedWriter("new", max_bytes=n(2000)).abort(),
    "shuffle": lambda n: tfr.shuffle(
        "shard",
        "shuffled",
        num_shards=n(2),
        seed=n(3),
        max_memory=n(1 << 26),
        compression="GZIP",
        level=n(1),
        overwrite=True,
    ),
    "copy": lambda n: tfr.copy("shard", [3], "copied", num_shards=n(1), overwrite=True),
    "delete": lambda n: tfr.delete("shard", records=[], threads=n(1)),
    "verify": lambda n: tfr.verify("shard", threads=n(1)),
    "build_index": lambda n: tfr.build_index("shard", threads=n(1)),
    "build_keys": lambda n: tfr.build_keys("shard", "a", threads=n(1), max_memory=n(1 << 26)),
    "build_steps": lambda n: tfr.build_steps("shard", along="s/", threads=n(1)),
    "statistics": lambda n: tfr.statistics("shard", threads=n(1)),
    "scan": lambda n: list(tfr.scan("shard", batch_size=n(4), sample=n(9), threads=n(1))),
    "infer_features": lambda n: tfr.infer_features("shard", n(9)),
    "FixedLen": lambda n: tfr.parse_example([], {"s/b": tfr.FixedLen((n(3),), "int64")}),
    "Window": lambda n: tfr.Steps(
        "shard", along="s/", windows={"s/b": tfr.Window(n(1), n(1), n(1))}
    )[:2],
    "Image": lambda n: tfr.Image(size=(n(4), n(4)), max_pixels=n(1000)),
}


@pytest.mark.parametrize("kind", [Index, np.int64])
@pytest.mark.parametrize("call", INTEGERS)
def test_integers_are_what_has_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, kind: Of
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows("shard", ({"a": number, "s/b": [number] * 3} for number in range(40)))
    INTEGERS[call](kind)


def test_a_folder_of_indexes_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"index_folder": "memory"}
    with tfr.Writer("shard", **options) as writer:
        writer.write(b"one")
    for use in ("auto", "require"):
        (shard,) = tfr.Reader("shard", index=use, **options).shards
        assert shard.index == "memory/index"
    with pytest.raises(tfr.StaleIndexError):
        tfr.Reader("shard", index="require", index_folder="another")
    with pytest.raises(ValueError, match="Leave out index_folder"):
        tfr.Reader("shard", index="memory", **options)
    with pytest.raises(ValueError, match="Leave out index_folder"):
        tfr.Writer("other", index=False, **options)
    with pytest.raises(ValueError, match="but must be"):
        tfr.Reader("shard", index="folder")  # type: ignore[arg-type]
