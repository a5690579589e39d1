"""Compares the documentation with the sources: quoted messages exist, and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *ROOT.glob("examples/*.md")])

if not DOCS.exists():
    pytest.skip(f"there is no {DOCS}: run the tests in a checkout", allow_module_level=True)


def sources() -> str:
    """Returns the sources, with adjacent string literals joined."""
    files = [*ROOT.glob("csrc/**/*.cpp"), *ROOT.glob("csrc/**/*.h"), *ROOT.glob("tfrfast/**/*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def test_every_quoted_message_exists() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(quoted) > 30
    text = sources()
    assert [message for message in quoted if message not in text] == []


def test_every_promise_of_trust_has_its_test() -> None:
    page = (DOCS / "trust.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| .+ \| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(named) >= 18
    tests = [*ROOT.glob("tests/core/*.cpp"), *ROOT.glob("tests/python/**/*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    text = re.sub(r'"\s*\n\s*"', "", text)
    exists = {name for name in named if f'"{name}"' in text or f"def {name}(" in text}
    assert [name for name in named if name not in exists] == []


def test_the_sites_first_code_is_not_cut_off() -> None:
    """In a window of 1,300 pixels, a line of the site's code has space for 78 characters."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = readme.split("```python\n")[1].split("```")[0]
    assert max(map(len, code.splitlines())) <= 78


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []
