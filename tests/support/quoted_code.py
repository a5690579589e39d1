"""The code that the pages of docs/ show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from tfrfast import cli

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def run_page(
    name: str, names: Mapping[str, Any] | None = None, instead: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Runs the page's Python and its commands of tfrfast, from top to bottom. Returns the names that
    the code has defined.

    `names` are names that the page presupposes. `instead` maps quoted text to smaller work.
    """
    page = ROOT / name
    known: dict[str, Any] = {"__name__": "__main__", "tfr": tfr, "np": np, "rank": 0, "world": 1}
    known.update(names or {})
    text = page.read_text(encoding="utf-8")
    for quoted, smaller in (instead or {}).items():
        assert quoted in text, f"{name} does not say {quoted}"
        text = text.replace(quoted, smaller)
    for match in BLOCK.finditer(text):
        indent, language, code = match.groups()
        lines_before = text[: match.start(3)].count("\n")
        if language == "python":
            code = "\n" * lines_before + re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
            exec(compile(code, str(page), "exec"), known)  # errors name the page's lines
        for line in [] if language else code.splitlines():
            if line.startswith("tfrfast "):
                assert cli.main(shlex.split(line)[1:]) == 0, f"{name}:{lines_before}: {line}"
    return known


def pages_with_code() -> set[str]:
    """Returns the names of the pages with Python or commands of tfrfast."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    return {
        page.relative_to(ROOT).as_posix()
        for page in pages
        if re.search(r"^ *```(python|\ntfrfast )", page.read_text(encoding="utf-8"), re.MULTILINE)
    }


def write_shards(prefix: str, columns: Mapping[str, Any] | None = None, count: int = 300) -> None:
    """Writes three shards for the pages. The records have all features that any page reads."""
    number = np.arange(count)
    keys = [f"{'dog' if i < 10 else 'cat'}_{i}" for i in number]
    rows = {
        "image": [b"a picture"] * count,
        "jpg": [b"a picture"] * count,
        "label": number % 10,
        "cls": number % 10,
        "size": number % 7,
        "tokens": number,
        "dense": np.ones((count, 13), np.float32),
        "text": [f"sentence {i}" for i in number],
        "caption": [f"picture {i}" for i in number],
        "image/id": keys,
        "id": keys,
    }
    with tfr.ShardedWriter(prefix, num_shards=3, sync=False) as writer:
        writer.write_batch(tfr.encode_examples(columns or rows))
