"""Random chains of the methods of tf.data, with checkpoints: TensorFlow's elements, in TensorFlow's
time.
"""

from __future__ import annotations

import random
from pathlib import Path

from expectations import some_records, write


def attack(chosen: random.Random, folder: Path) -> str:
    from dataset_chains import check_a_chain  # TensorFlow starts in the round's own process

    files = [folder / f"shard-{number}" for number in range(3)]
    for file in files:
        write(file, some_records(chosen, file.name))
    check_a_chain(chosen, [str(file) for file in files])
    return "chains of tf.data"
