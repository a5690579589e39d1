"""The Python that a page of docs/ shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"


def run_page(name: str) -> dict[str, Any]:
    """Runs everything that docs/<name> quotes, from the top to the end. Returns what it names."""
    page = DOCS / name
    names: dict[str, Any] = {"__name__": "__main__"}
    for match in re.finditer(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        lines_before = match.string[: match.start(1)].count("\n")
        code = "\n" * lines_before + match[1]  # so that errors name the page's lines
        exec(compile(code, str(page), "exec"), names)
    return names
