"""Pictures are well-formed XML, show every figure, wherever it lies, and have a dark scheme."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from tfrfast.bench.order_chart import Panel, draw_orders
from tfrfast.bench.ratio_chart import Bar, draw_ratios

SVG = "{http://www.w3.org/2000/svg}"
BARS = [
    Bar("data", "fast & <big>", "ours", 8.0, 6.0, 9.0),
    Bar("data", "slow", "ours", 0.25, 0.2, 0.3),
]


def boxes(root: ElementTree.Element, colour: str) -> list[tuple[float, float]]:
    """Returns the beginning and the end of each box of that colour."""
    found = [each for each in root.iter(f"{SVG}rect") if each.get("class") == colour]
    begins = [float(each.get("x", 0)) for each in found]
    return [(x, x + float(each.get("width", 0))) for x, each in zip(begins, found, strict=True)]


def texts(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {each.text or "": each for each in root.iter(f"{SVG}text")}


@pytest.fixture
def ratios(tmp_path: Path) -> ElementTree.Element:
    draw_ratios(tmp_path / "ratios.svg", "title", "theirs", BARS, notes=["this machine"])
    return ElementTree.parse(tmp_path / "ratios.svg").getroot()


def test_ratios_below_one_go_left_and_above_one_right(ratios: ElementTree.Element) -> None:
    _, right, left = boxes(ratios, "series0")  # the first one is the legend's
    assert abs(left[1] - right[0]) <= 0.2
    # Eight times as fast is three doublings, a quarter two halvings.
    assert abs((right[1] - right[0]) / (left[1] - left[0]) - 3 / 2) < 0.01


def test_values_and_whiskers_stand_at_the_ends_of_bars(ratios: ElementTree.Element) -> None:
    found = texts(ratios)
    _, right, left = boxes(ratios, "series0")
    lines = [each for each in ratios.iter(f"{SVG}line") if each.get("class") == "line-ink"]
    whiskers = [
        (float(each.get("x1", 0)), float(each.get("x2", 0)))
        for each in lines
        if each.get("y1") == each.get("y2")
    ]
    assert whiskers[0][0] < right[1] < whiskers[0][1] < float(found["8.0"].get("x", 0))
    assert float(found["0.2"].get("x", 0)) < whiskers[1][0] < left[0] < whiskers[1][1]
    assert found["0.2"].get("text-anchor") == "end"


def test_everything_is_named(ratios: ElementTree.Element) -> None:
    found = set(texts(ratios))
    assert {"title", "data", "ours", "fast & <big>", "slow", "1/4", "1", "8"} <= found
    assert {"this machine", "times the speed of theirs (logarithmic)"} <= found
    assert any("Whiskers" in each for each in found)


def test_nothing_lies_outside_the_picture(ratios: ElementTree.Element) -> None:
    width, height = float(ratios.get("width", 0)), float(ratios.get("height", 0))
    for text in ratios.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", 0)) <= width
        assert 0 <= float(text.get("y", 0)) <= height - 4
    assert all(0 <= begin <= end <= width for begin, end in boxes(ratios, "series0"))


def test_every_colour_has_a_light_and_a_dark_form(tmp_path: Path) -> None:
    draw_ratios(tmp_path / "ratios.svg", "title", "theirs", BARS)
    light, dark = (tmp_path / "ratios.svg").read_text().split("prefers-color-scheme: dark")
    rules = [dict(re.findall(r"\.([\w-]+) \{ fill: (#\w{6})", each)) for each in (light, dark)]
    used = set(re.findall(r'class="([\w-]+)"', dark)) - {"frame"}
    assert {name.removeprefix("line-") for name in used} <= set(rules[0])
    assert all(rules[0][name] != rules[1][name] for name in rules[0])


def test_orders_are_dots_inside_their_frames(tmp_path: Path) -> None:
    count = 100
    order = np.random.default_rng(0).permutation(count)
    panels = [Panel(name, np.arange(count), order, count) for name in ("one", "two")]
    draw_orders(tmp_path / "orders.svg", "title", "a sample of", panels)
    root = ElementTree.parse(tmp_path / "orders.svg").getroot()
    assert {"title", "a sample of", "record number", "position in the epoch"} <= set(texts(root))
    paths = list(root.iter(f"{SVG}path"))
    frames = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "frame"]
    for path, frame in zip(paths, frames, strict=True):
        dots = [dot.split("h")[0].split() for dot in path.get("d", "").split("M")[1:]]
        assert len(dots) == count
        for at, (name, side) in enumerate((("x", "width"), ("y", "height"))):
            begin, length = float(frame.get(name, 0)), float(frame.get(side, 0))
            assert all(begin <= float(dot[at]) <= begin + length for dot in dots)
