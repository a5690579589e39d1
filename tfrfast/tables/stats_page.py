"""A page with histograms, for a browser. The page needs no other file, and runs no scripts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from tfrfast.base.sizes import format_bytes
from tfrfast.tables.statistics import FeatureStats, Histogram

__all__ = ["stats_page"]

_WIDTH, _HEIGHT = 320, 96
_MAX_BAR = 40
_FREQUENT_SHOWN = 6
_SHOWN_CHARACTERS = 28

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf8; --card: #fff; --ink: #1f2328; --soft: #667079;
  --line: #e5e2dc; --bar: #2f6f8f; --bar-soft: #d6e6ee; --warn: #b4552d; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --card: #1d2125; --ink: #e6e8ea;
  --soft: #97a1aa; --line: #30363b; --bar: #6db3d3; --bar-soft: #27404d; --warn: #e39a74; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 78rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; font-weight: 650; margin: 0; overflow-wrap: anywhere; }
header p { color: var(--soft); margin: .3rem 0 2rem; }
main { display: grid; gap: 1.1rem; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); }
article { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1rem 1.15rem 1.1rem; }
h2 { font-size: 1.02rem; font-weight: 620; margin: 0; overflow-wrap: anywhere; }
.type { color: var(--soft); font-weight: 400; font-size: .85rem; margin-left: .4rem; }
.share { height: 4px; border-radius: 2px; background: var(--bar-soft); margin: .55rem 0 .2rem; }
.share i { display: block; height: 100%; border-radius: 2px; background: var(--bar); }
.note { color: var(--soft); font-size: .82rem; margin: 0 0 .5rem; }
.note b { color: var(--warn); font-weight: 600; }
svg { display: block; width: 100%; height: auto; margin: .4rem 0 0; }
svg rect { fill: var(--bar); } svg line { stroke: var(--line); }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: .78rem;
  font-variant-numeric: tabular-nums; }
.axis span:only-child { margin: 0 auto; }
dl { display: grid; grid-template-columns: repeat(4, auto); gap: 0 1rem; margin: .7rem 0 .3rem;
  justify-content: space-between; }
dt { color: var(--soft); font-size: .75rem; grid-row: 1; } dd { margin: 0; grid-row: 2;
  font-variant-numeric: tabular-nums; font-size: .92rem; }
table { width: 100%; border-collapse: collapse; margin-top: .6rem; font-size: .84rem; }
td { padding: .13rem 0; } td.n { text-align: right; color: var(--soft); white-space: nowrap;
  font-variant-numeric: tabular-nums; padding-left: .8rem; }
td.v { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
"""


def stats_page(
    title: str, stats: Sequence[FeatureStats], *, records: int, shards: int, num_bytes: int
) -> str:
    """Returns the page as HTML. The page follows the browser's choice of light or dark."""
    places = f"{shards:,} shards" if shards != 1 else "one shard"
    facts = f"{records:,} records in {places}, {format_bytes(num_bytes)}"
    cards = "\n".join(map(_card, stats)) or "<p>No features were found.</p>"
    name = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{name}</h1><p>{facts}, {len(stats)} features</p></header>\n"
        f"<main>\n{cards}\n</main>\n</body>\n</html>\n"
    )


def _card(stats: FeatureStats) -> str:
    share = stats.records / stats.of_records if stats.of_records else 0.0
    return (
        f'<article><h2>{html.escape(stats.name)}<span class="type">{_type(stats)}</span></h2>'
        f'<div class="share"><i style="width:{share:.2%}"></i></div>'
        f'<p class="note">{_presence(stats, share)}</p>'
        f"{_chart(stats.histogram)}{_numbers(stats)}{_frequent(stats)}</article>"
    )


def _type(stats: FeatureStats) -> str:
    if stats.min_values == stats.max_values:
        return stats.type if stats.max_values == 1 else f"{stats.type} [{stats.max_values}]"
    return f"{stats.type} [{stats.min_values} to {stats.max_values}, mean {stats.mean_values:.3g}]"


def _presence(stats: FeatureStats, share: float) -> str:
    parts = [
        "in every record" if stats.records == stats.of_records else f"in {share:.1%} of records"
    ]
    if stats.nan:
        parts.append(f"<b>{stats.nan:,} NaN</b>")
    return " · ".join(parts)


def _chart(histogram: Histogram) -> str:
    if not histogram.counts:
        return '<p class="note">no values to draw</p>'
    count, highest = len(histogram.counts), max(histogram.counts)
    step = _WIDTH / count
    # A bar of a single value has the value in its middle.
    one_each = count == 1 or all(edge % 1 == 0.5 for edge in histogram.edges)
    bars = []
    for number, each in enumerate(histogram.counts):
        if not each:
            continue
        tall = max(1.0, each / max(highest, 1) * (_HEIGHT - 4))
        low, high = histogram.edges[number : number + 2]
        wide = min(max(step - 1, 0.5), _MAX_BAR)
        what = _short(_middle(low, high)) if one_each else f"{_short(low)} to {_short(high)}"
        bars.append(
            f'<rect x="{(number + 0.5) * step - wide / 2:.1f}" y="{_HEIGHT - tall:.1f}" '
            f'width="{wide:.1f}" height="{tall:.1f}" rx="1">'
            f"<title>{what}: {each:,} of the sample</title></rect>"
        )
    first, last = histogram.edges[0], histogram.edges[-1]
    if one_each:
        first, last = _middle(*histogram.edges[:2]), _middle(*histogram.edges[-2:])
    ends = [first, last] if first != last else [first]
    unit = " B" if histogram.of == "bytes" else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 1}" role="img" aria-label="histogram">'
        f"{''.join(bars)}"
        f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT + 0.5}" y2="{_HEIGHT + 0.5}"/></svg>'
        f'<div class="axis">{"".join(f"<span>{_short(end)}{unit}</span>" for end in ends)}</div>'
    )


def _middle(low: float, high: float) -> float:
    return low + (high - low) / 2


def _numbers(stats: FeatureStats) -> str:
    low, mean, high = stats.min, stats.mean, stats.max
    unit = ""
    if stats.type == "bytes":
        low, mean, high, unit = stats.min_bytes, stats.mean_bytes, stats.max_bytes, " B"
    distinct = f"{stats.distinct:,}" if stats.exact else f"≈ {stats.distinct:,}"
    facts = [
        (name, "" if value is None else f"{_short(value)}{unit}")
        for name, value in (("min", low), ("mean", mean), ("max", high))
    ]
    items = "".join(
        f"<dt>{name}</dt><dd>{text}</dd>" for name, text in [*facts, ("distinct", distinct)]
    )
    return f"<dl>{items}</dl>"


def _frequent(stats: FeatureStats) -> str:
    shown = [each for each in stats.frequent if each[1] > 1][:_FREQUENT_SHOWN]
    if not shown:
        return ""
    rows = "".join(
        f'<tr><td class="v">{_value(value)}</td>'
        f'<td class="n">{count:,}</td><td class="n">{count / max(stats.values, 1):.1%}</td></tr>'
        for value, count in shown
    )
    return f"<table>{rows}</table>"


def _value(value: Any) -> str:
    if not isinstance(value, bytes):
        return html.escape(_short(value))
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = repr(value)[2:-1]
    text = text if text.isprintable() else repr(text)[1:-1]
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    return html.escape(cut) or "<i>empty</i>"


def _short(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
