"""What tfr.explain() says of a dataset, for assertions."""

from __future__ import annotations

from typing import Any

import tfrfast as tfr


def is_planned(dataset: Any) -> bool:
    """Whether tfrfast reads the first records of a dataset in a known order."""
    # After an iteration, the seconds of its parts come first.
    lines = str(tfr.explain(dataset)).splitlines()
    heads = ("TFRecordDataset", "TensorFlow's")
    return ": planned" in next((line for line in lines if line.startswith(heads)), lines[0])
