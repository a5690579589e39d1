"""The common part of subcommands that take chosen records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["add_choice", "numbers_in"]


def add_choice(which: Any) -> None:
    """Adds --records and --where to a group of arguments."""
    which.add_argument(
        "--records",
        metavar="FILE",
        help="a file with a record number a line, or a .npy file; - reads stdin",
    )
    which.add_argument(
        "--where",
        metavar="CONDITION",
        help="a condition on features in SQL, like 'label == 3'; takes DuckDB or Polars",
    )


def numbers_in(name: str) -> Any:
    """Returns the record numbers in the file that --records names."""
    if name.endswith(".npy"):
        return np.load(name, allow_pickle=False)
    if name == "-":
        return _numbers(sys.stdin.read().split(), "stdin")
    with open(name, encoding="utf-8") as file:
        return _numbers(file.read().split(), name)


def _numbers(words: Sequence[str], where: str) -> Any:
    return np.array([_number(word, where) for word in words], np.int64)


def _number(word: str, where: str) -> int:
    try:
        number = int(word)
    except ValueError:
        raise ValueError(f"{where} has {word!r}, which is not a record number.") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{where} has {word!r}, and no data set has so many records.")
    return number
