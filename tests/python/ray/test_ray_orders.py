"""Every order in a Ray dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from every_order import ID, orders, source_in_order

pytest.importorskip("ray", reason="needs ray")

import tfrfast.ray as tray


@orders
def test_rows_are_in_the_order(local_ray: Any, tmp_path: Path, name: str) -> None:
    source, order = source_in_order(tmp_path, name)
    loader = tfr.Loader(source, 9, features=ID, **order)
    expected = [number for batch in loader for number in batch["id"].tolist()]
    dataset = tray.read(source, features=ID, override_num_blocks=3, **order)
    assert [row["id"] for row in dataset.take_all()] == expected


def test_blocks_have_rows_and_the_error_says_so(local_ray: Any, tmp_path: Path) -> None:
    source, order = source_in_order(tmp_path, "shuffled")
    with pytest.raises(TypeError, match=r"number of rows here\. A Loader takes a ByTokens"):
        tray.read(source, features=ID, batch_size=tfr.ByTokens(9), **order)  # type: ignore[arg-type]
