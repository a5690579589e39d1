"""The page of `tfrfast view` in a browser: what it shows, and what strangers' bytes cannot do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import damage
from tfrfast.columns.shown import png_of

pytest.importorskip("websocket")
if shutil.which("chromium") is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)

from browser import Page, browser

EVIL = "<img src=x onerror=alert(1)>"
SEEN = "[...document.querySelectorAll('.row')].every((row) => row.children.length > 1)"


def picture(number: int) -> bytes:
    return png_of(np.full((20, 30, 3), number % 256, np.uint8))


@contextmanager
def viewed(*arguments: object) -> Iterator[Page]:
    command = [sys.executable, "-m", "tfrfast", "view", "--no-open", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            with browser() as page:
                page.go_to(address)
                page.wait_for(f"document.querySelectorAll('.row').length && {SEEN}")
                yield page
                assert page.errors == []
        finally:
            server.terminate()


def test_pictures_filters_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path, index=False) as writer:
        for number in range(500):
            writer.write_example(
                {"image": picture(number), "label": number % 7, EVIL: EVIL.encode()}
            )
    damage(str(path), 3, byte=60)
    with viewed(path) as page:
        page.wait_for(
            "[...document.querySelectorAll('.row img')].some((each) => each.naturalWidth === 30)"
        )
        page.wait_for("document.querySelector('[data-at=\"3\"]').textContent.includes('CRC')")
        assert page.value("document.querySelector('.row.lost').dataset.at") == "3"
        page.click("[data-at='5']")
        page.wait_for("document.querySelector('aside img')?.naturalWidth === 30")
        assert EVIL in page.value("document.querySelector('aside').textContent")
        page.value("document.getElementById('by').value = 'condition'")
        page.value("document.getElementById('by').dispatchEvent(new Event('change'))")
        page.value("document.querySelector('[name=condition]').value = 'label = 6'")
        page.click("#ask button")
        page.wait_for("document.getElementById('what').textContent.startsWith('71 records')")
        page.wait_for(SEEN)
        assert page.value("document.querySelector('.row .cell').textContent") == "6"
        page.click("#as-grid")
        page.wait_for(
            "[...document.querySelectorAll('.tile img')].filter((each) => each.naturalWidth).length > 9"
        )
        page.click("[data-tab=features]")
        page.wait_for("document.querySelectorAll('.cards article').length === 3")
        page.click("[data-tab=shards]")
        assert str(path) in page.value("document.getElementById('shards').textContent")
        assert page.value("document.querySelectorAll('[onerror], script:not([nonce])').length") == 0


def test_features_with_odd_names_and_without_values(tmp_path: Path) -> None:
    path = tmp_path / "x"
    empty = b"\n\1x\x12\2\n\0"
    steps = b"\n\1l\x12\4\n\2\n\0"
    with tfr.Writer(path) as writer:
        writer.write_example(
            {"constructor": [1], "toString": 2, "__proto__": 3, "a\xa0b": "c\u3000d"}
        )
        writer.write(b"\n" + bytes([len(empty) + 2]) + b"\n" + bytes([len(empty)]) + empty)
        writer.write(b"\x12" + bytes([len(steps) + 2]) + b"\n" + bytes([len(steps)]) + steps)
    with viewed(path) as page:
        assert "c d" in page.value("document.querySelector('.row').textContent")
        page.click("#as-grid")
        page.wait_for("document.querySelectorAll('.tile .words').length === 6")
        for at in range(3):
            page.click(f"[data-at='{at}']")
            page.wait_for(f"document.querySelector('aside').textContent.includes('Record {at}')")


def test_two_million_records_scroll(tmp_path: Path) -> None:
    path = tmp_path / "x"
    records = [tfr.encode_example({"id": number}) for number in range(1000)]
    with tfr.Writer(path) as writer:
        for _ in range(2000):
            for record in records:
                writer.write(record)
    with viewed(path) as page:
        page.value("document.getElementById('scroll').scrollTop = 1e9")
        page.wait_for(
            f"{SEEN} && [...document.querySelectorAll('.row')].at(-1).dataset.at === '1999999'"
        )
        top = int(page.value("document.querySelector('.row').dataset.at"))
        page.value(
            "document.getElementById('scroll').dispatchEvent("
            "new WheelEvent('wheel', {deltaY: -340, cancelable: true}))"
        )
        page.wait_for(f"document.querySelector('.row').dataset.at === '{top - 10}'")
        page.value("document.querySelector('[name=record]').value = '1,234,567'")
        page.click("#go button")
        page.wait_for("document.querySelector('.row.open')?.dataset.at === '1234567'")
        page.wait_for("document.querySelector('aside').textContent.includes('567')")
        assert page.value("document.querySelectorAll('.row').length") < 100


def test_an_episode_is_a_strip_of_pictures(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path) as writer:
        for steps in (12, 5):
            writer.write_example(
                {
                    "steps/image": [picture(number) for number in range(steps)],
                    "steps/action": np.arange(steps * 3, dtype=np.float32),
                    "name": b"an episode",
                }
            )
    with viewed(path, "--steps", "steps/") as page:
        page.click("[data-at='0']")
        page.wait_for("document.querySelectorAll('.strip img').length === 12")
        page.wait_for(
            "[...document.querySelectorAll('.strip img')].every((each) => each.naturalWidth === 30)"
        )
        assert page.value("document.querySelectorAll('aside polyline').length") == 3


def test_numbers_from_the_end_are_of_all_records_also_with_a_split(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "tfds" / "little" / "1.0.0"
    folder = shutil.copytree(golden, tmp_path / "1.0.0")  # a step file is made beside it
    last = len(tfr.tfds(str(folder), "train[1:3]").reader) - 1
    with viewed(folder, "--split", "train[1:3]") as page:
        page.value("document.querySelector('[name=record]').value = '-1'")
        page.click("#go button")
        title = page.wait_for("document.querySelector('aside h2')?.textContent")
        assert title.split()[:2] == ["Record", str(last)]


def test_damage_after_the_last_record_is_marked_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path, index=False) as writer:
        for number in range(3):
            writer.write_example({"label": number})
    os.truncate(path, path.stat().st_size - 5)
    with viewed(path) as page:
        marked = "[...document.querySelectorAll('.torn')].map((row) => row.dataset.at)"
        assert page.value(marked) == ["1"]
        assert page.value("document.querySelector('.torn').title").startswith("Damage: bytes ")
        assert page.value("document.querySelectorAll('.lost').length") == 0
