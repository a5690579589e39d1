"""Every method of tf.data after our source: the same elements and checkpoints, in no more time."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from record_files import write_shards

pytest.importorskip("tensorflow")

from dataset_chains import check_a_chain

CHAINS = int(os.environ.get("TFRFAST_TEST_CHAINS", "8"))


@pytest.mark.parametrize("number", range(CHAINS))
def test_random_chains(tmp_path: Path, number: int) -> None:
    check_a_chain(random.Random(number), write_shards(tmp_path, [13, 0, 20, 1]))
