"""What tfr.explain() says of a dataset, for assertions."""

from __future__ import annotations

from typing import Any

import tfrfast as tfr


def is_planned(dataset: Any) -> bool:
    """Whether tfrfast reads the first records of a dataset in a known order."""
    heading = str(tfr.explain(dataset)).partition("\n")[0]
    return ": planned" in heading
