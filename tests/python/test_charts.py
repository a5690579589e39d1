"""Pictures are well-formed XML and show every figure, wherever it lies."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from tfrfast._bench.charts import Bar, Panel, draw_orders, draw_ratios

SVG = "{http://www.w3.org/2000/svg}"


def test_ratios_below_one_go_left_and_above_one_right(tmp_path: Path) -> None:
    bars = [
        Bar("fast & <big>", "ours", 8.0, 6.0, 9.0),
        Bar("slow", "ours", 0.25, 0.2, 0.3),
    ]
    draw_ratios(tmp_path / "ratios.svg", "title", bars)
    root = ElementTree.parse(tmp_path / "ratios.svg").getroot()
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {"title", "ours", "fast & <big>", "slow", "8.0", "0.2"} <= set(texts)
    drawn = [each for each in root.iter(f"{SVG}rect") if each.get("fill", "").startswith("#")]
    legend, right, left = [(float(e.get("x", 0)), float(e.get("width", 0))) for e in drawn]
    assert legend[1] == 12
    assert abs(left[0] + left[1] - right[0]) <= 0.2
    # Eight times as fast is three doublings, a quarter two halvings.
    assert abs(right[1] / left[1] - 3 / 2) < 0.01


def test_orders_are_dots_inside_their_frames(tmp_path: Path) -> None:
    count = 100
    order = np.random.default_rng(0).permutation(count)
    panels = [Panel(name, np.arange(count), order, count) for name in ("one", "two")]
    draw_orders(tmp_path / "orders.svg", panels)
    root = ElementTree.parse(tmp_path / "orders.svg").getroot()
    paths = list(root.iter(f"{SVG}path"))
    frames = [each for each in root.iter(f"{SVG}rect") if each.get("fill") == "none"]
    for path, frame in zip(paths, frames, strict=True):
        dots = [dot.split("h")[0].split() for dot in path.get("d", "").split("M")[1:]]
        assert len(dots) == count
        side = float(frame.get("width", 0))
        for at, name in enumerate(("x", "y")):
            begin = float(frame.get(name, 0))
            assert all(begin <= float(dot[at]) <= begin + side for dot in dots)
