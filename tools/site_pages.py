"""Hooks that tell mkdocs about this repository.

The documentation is written so that its links work in the repository. Pages that lie outside docs/
become pages of the site under the names below, scripts become pages with their code, and links to
both are changed when a page is built. The API is read from the sources. No module is imported.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

# Files of the repository that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
}
# Files whose code is shown, if a page links to them.
CODE = ("examples/*.py", "tfrfast/bench/shapes.py")

LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in pages().items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".py"):
            text = f"# {posixpath.basename(source)}\n\n```python\n{text}```\n"
        added = File.generated(config, page, content=text)
        if source.endswith(".py"):
            added.inclusion = added.inclusion.NOT_IN_NAV
        files.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Changes links to files of the repository into links to the site's pages."""
    places = pages()
    sources = {place: source for source, place in places.items()}
    here = page.file.src_uri
    folder = posixpath.dirname(sources.get(here, f"docs/{here}"))

    def moved(match: re.Match[str]) -> str:
        target, hash, anchor = match[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        named = posixpath.normpath(posixpath.join(folder, target))
        place = places.get(named) or named.removeprefix("docs/")
        if place == named and not (ROOT / "docs" / named).exists():
            raise PluginError(f"{here} links to {named}, which is not a page of the site.")
        relative = posixpath.relpath(place, posixpath.dirname(here) or ".")
        return f"{match[1]}{relative}{hash}{anchor}{match[3]}"

    return LINK.sub(moved, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """llms.txt lists the pages, with the headings of each, for programs that read them."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for section in config.nav or []:
        for name, entry in section.items():
            lines += [f"## {name}", ""]
            lines += [_listed(title, page) for title, page in _entries(name, entry)]
            lines.append("")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def _entries(name: str, entry: Any) -> list[tuple[str, str]]:
    if isinstance(entry, str):
        return [(name, entry)]
    return [
        pair
        for each in entry
        for pair in (each.items() if isinstance(each, dict) else [(name, each)])
    ]


def _listed(title: str, page: str) -> str:
    sources = {place: source for source, place in pages().items()}
    text = (ROOT / sources.get(page, f"docs/{page}")).read_text(encoding="utf-8")
    text = re.sub("^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall("^##? (.+)$", text, re.MULTILINE)
    address = "" if page == "index.md" else re.sub(r"(/index)?\.md$", "/", page)
    return f"- [{title}]({address or './'}): {'; '.join(headings)}"


def pages() -> dict[str, str]:
    """The site's name for each file outside docs/ that it shows."""
    found = {source: place for source, place in PAGES.items() if (ROOT / source).exists()}
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            source = path.relative_to(ROOT).as_posix()
            found[source] = f"{os.path.splitext(source)[0].lstrip('_')}.md"
    return found
