"""A step's parts are fetched from an object, not its episode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from range_server import RangeServer
from record_files import write_rows

pytest.importorskip("obstore", reason="needs obstore")


def episodes() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "steps/image": [rng.bytes(20_000) for _ in range(60)],
            "steps/action": rng.random(7 * 60, np.float32),
            "name": [b"episode %d" % number],
        }
        for number in range(4)
    ]


@pytest.mark.parametrize("is_cached", [False, True])
def test_only_the_parts_of_steps_are_fetched(
    server: RangeServer, tmp_path: Path, is_cached: bool
) -> None:
    local = str(tmp_path / "data")
    write_rows(local, episodes())
    server.put("set/data", Path(local).read_bytes())
    url = f"{server.url}/set/data"
    expected = tfr.Steps(local, along="steps/")
    options: dict[str, Any] = {"index_folder": str(tmp_path / "indexes")}
    tfr.Steps(url, along="steps/", **options).close()
    if is_cached:
        options["cache"] = tfr.DiskCache(tmp_path / "cache", "1GiB")
    steps = tfr.Steps(url, along="steps/", **options)
    server.forget()
    assert steps[150] == expected[150]
    # At most one request for each feature: the picture, 16 steps of actions, and the name.
    sizes = sorted((each.end or 0) - (each.begin or 0) for each in server.reads())
    assert len(sizes) <= 3
    if not is_cached:
        assert sizes[-1] < 20_020
        assert sum(sizes[:-1]) < 1700  # features that lie close share a request
    server.forget()
    numbers = [200, 40, 77, 77]
    assert [bytes(each) for each in steps[numbers]] == [expected[each] for each in numbers]
    # Three images of 20 kB, three runs of actions and three names. A whole episode has 1.2 MB.
    fetched = sum((each.end or 0) - (each.begin or 0) for each in server.reads())
    assert fetched < (1_200_000 if is_cached else 70_000)
    seen = {}
    for batch in tfr.Loader(steps, 16, seed=1):
        seen |= dict(zip(batch.indices.tolist(), map(bytes, batch), strict=True))
    assert seen == dict(enumerate(expected))


def test_an_object_that_was_replaced_by_one_of_the_same_size(
    server: RangeServer, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    url = f"{server.url}/set/data"
    keys.mkdir()
    for names in ("abcd", "dcba"):
        local = str(tmp_path / names)
        write_rows(local, [{"id": [each.encode()], "steps/n": [ord(each)]} for each in names])
        server.put("set/data", Path(local).read_bytes())
        reader = tfr.Reader(url, index_folder=str(tmp_path / "indexes"))
        if names == "dcba":
            with pytest.raises(tfr.StaleIndexError, match="belongs to other data"):
                reader.by_key("id", folder=str(keys))
        tfr.build_keys(reader, "id", folder=str(keys))
        assert reader.by_key("id", folder=str(keys)).find(["a"]) == [names.index("a")]
        assert list(tfr.Steps(reader, along="steps/")) == list(tfr.Steps(local, along="steps/"))
