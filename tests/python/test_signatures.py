"""Names and defaults of arguments agree all over the public functions and classes."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr


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
                assert name == "source", where
            assert name not in ("filenames", "files", "index_dir"), where
    assert {"overwrite", "index", "index_folder", "paths", "source"} <= seen


def test_what_only_tfrfast_needs_is_private() -> None:
    private = {"describe", "encode", "fingerprint", "skips_damage", "with_share", "with_segments"}
    for name in tfr.__all__:
        assert not private.intersection(dir(getattr(tfr, name))), name
    assert len(tfr._MODULES) <= 50


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
