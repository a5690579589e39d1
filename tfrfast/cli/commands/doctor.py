"""Describe this machine, the way of reading PATHS, and the causes of slowness. Paste the output
into bug reports. Nothing is built or changed.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Iterator

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.base.tables import terminal_width
from tfrfast.cli.common import add_common, print_json, say
from tfrfast.cli.doctor.advice import advice_on
from tfrfast.cli.doctor.data import DataFacts, look_at_data
from tfrfast.cli.doctor.machine import MachineFacts, look_at_machine

_WIDTH = 88
_INDENT = 13


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, paths=False, progress=False)
    parser.add_argument(
        "paths", nargs="*", metavar="PATHS", help="shards, folders, URLs, or quoted globs"
    )


def run(options: argparse.Namespace) -> int:
    machine = look_at_machine()
    data = look_at_data(options.paths) if options.paths else None
    advice = advice_on(machine, data)
    if options.json:
        print_json({"machine": machine, "data": data, "advice": advice})
        return 0
    _say_facts(_facts_on_machine(machine))
    if data is not None:
        print()
        _say_facts(_facts_on_data(data))
    print()
    width = min(_WIDTH, terminal_width(sys.stdout) or _WIDTH)
    for each in advice or ["Nothing is known to be slow here."]:
        say(textwrap.fill(f"- {each}", width, subsequent_indent="  ", break_on_hyphens=False))
    return 0


def _say_facts(facts: Iterable[tuple[str, str]]) -> None:
    width = terminal_width(sys.stdout)
    for name, text in facts:
        line = f"{name:<{_INDENT - 1}} {text}"
        if width is not None:
            indent = " " * _INDENT
            line = textwrap.fill(
                line,
                width,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        say(line)


def _facts_on_machine(machine: MachineFacts) -> Iterator[tuple[str, str]]:
    cache = "none"
    if machine.cache_folder:
        cache = (
            f"{machine.cache_folder}: {counted(machine.cache_files, 'files')}, "
            f"{format_bytes(machine.cache_bytes)} of at most "
            f"{format_bytes(machine.cache_limit_bytes)}"
        )
        if not machine.cache_is_used:
            cache += "; NOT USED"
    usable = f"{machine.usable_processors} of {machine.processors} usable"
    yield from machine.versions.items()
    yield "system", machine.system
    yield "processor", f"{machine.processor}, {usable}"
    yield "memory", format_bytes(machine.memory_bytes)
    yield "kernels", f"CRC-32C {machine.crc32c_kernel}, varints {machine.varint_kernel}"
    yield "inflates", machine.inflates_with or "nothing: there is no zlib"
    yield "index cache", cache
    for name, value in machine.settings.items():
        yield "set", f"{name}={value}"


def _facts_on_data(data: DataFacts) -> Iterator[tuple[str, str]]:
    yield "shards", f"{data.shards:,}, {format_bytes(data.bytes)}"
    if data.records is not None:
        yield "records", f"{data.records:,}"
        yield "compression", ", ".join(data.compression)
    for place in data.places:
        lasts = "" if place.identity_lasts else "; a change is noticed by size and time alone"
        if place.request_ms is not None:
            takes = f"a request takes {place.request_ms:.1f} ms"
            yield "bucket", f"{place.mounted_at}: {takes}{lasts}"
        else:
            how = "mapped" if place.is_mapped else "read with pread"
            yield "filesystem", f"{place.filesystem} at {place.mounted_at}: {how}{lasts}"
    for folder, count in data.indexes.items():
        yield "indexes", f"{count:,} in {folder}"
    if data.no_index is not None:
        yield "indexes", f"not for all shards: {data.no_index}"
