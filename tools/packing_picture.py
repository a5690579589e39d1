"""Draws docs/packing.svg: a batch of packs beside padded rows of the same records.

The packs are those that docs/permutation.md specifies, so nothing is compiled or installed.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOKENS, ROWS = 512, 8
_SCALE, _ROW, _LEFT, _TOP = 0.68, 22, 20.0, 62.0
_COLOURS = ("series0", "series1", "series2", "series3")


def loaded(path: str) -> Any:
    """Imports a file alone, without the package around it."""
    sys.path.insert(0, str((ROOT / path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(path: Path) -> None:
    source = random.Random(7)
    lengths = [min(TOKENS, max(1, round(source.lognormvariate(4.4, 0.9)))) for _ in range(400)]
    packing = loaded("tests/support/reference_packing.py").ReferencePacking(
        [(length,) for length in lengths], (TOKENS,)
    )
    packs = packing.epoch(1, 0)[:ROWS]
    padded = [[record] for record in range(ROWS)]
    svg = loaded("benchmarks/svg.py").Svg(
        2 * (_LEFT + TOKENS * _SCALE) + 20, _TOP + ROWS * _ROW + 40
    )
    share = sum(lengths) / (packing.packs * TOKENS)
    for title, rows, left in (
        (
            f"a row for each record: {sum(lengths) / len(lengths) / TOKENS:.0%} tokens",
            padded,
            _LEFT,
        ),
        (
            f"tfr.Packed({TOKENS}, rows={ROWS}): {share:.1%} tokens",
            [[record for record, _ in row] for row in packs],
            2 * _LEFT + TOKENS * _SCALE,
        ),
    ):
        svg.text(left, 40, title, bold=True)
        for number, row in enumerate(rows):
            y, column = _TOP + number * _ROW, 0
            svg.rectangle(left, y, TOKENS * _SCALE, _ROW - 6, "faint")
            for segment, record in enumerate(row):
                width = lengths[record] * _SCALE
                colour = _COLOURS[segment % len(_COLOURS)]
                svg.rectangle(left + column * _SCALE, y, max(width - 1, 1), _ROW - 6, colour)
                column += lengths[record]
    svg.text(
        _LEFT,
        _TOP + ROWS * _ROW + 20,
        "a line is a row, a colour a record, grey is padding",
        colour="quiet",
    )
    svg.save(path)


if __name__ == "__main__":
    draw(ROOT / "docs/packing.svg")
