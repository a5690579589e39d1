"""`tfrfast doctor`: describes machine and data, and causes of slowness; for bug reports."""

from __future__ import annotations

import argparse
import textwrap

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import Subparsers, add_command, print_json, say
from tfrfast.cli.doctor.advice import advice_on
from tfrfast.cli.doctor.data import Data, look_at_data
from tfrfast.cli.doctor.machine import Machine, look_at_machine

_WIDTH = 88


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "doctor",
        run,
        help=help,
        description="Describe this machine, the way of reading PATHS, and the causes of slowness. "
        "Paste the output into bug reports. Nothing is built or changed.",
        paths=False,
        progress=False,
    )
    parser.add_argument("paths", nargs="*", metavar="PATHS", help="shards, URLs, or quoted globs")


def run(options: argparse.Namespace) -> int:
    machine = look_at_machine()
    data = look_at_data(options.paths) if options.paths else None
    advice = advice_on(machine, data)
    if options.json:
        print_json(
            {
                "machine": machine._asdict(),
                "data": None
                if data is None
                else {**data._asdict(), "places": [each._asdict() for each in data.places]},
                "advice": advice,
            }
        )
        return 0
    say("\n".join(_machine_lines(machine)))
    if data is not None:
        print()
        say("\n".join(_data_lines(data)))
    print()
    for each in advice or ["Nothing is known to be slow here."]:
        say(textwrap.fill(f"- {each}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return 0


def _line(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _machine_lines(machine: Machine) -> list[str]:
    cache = "none"
    if machine.cache_folder:
        cache = (
            f"{machine.cache_folder}: {counted(machine.cache_files, 'files')}, "
            f"{format_bytes(machine.cache_bytes)} of at most "
            f"{format_bytes(machine.cache_limit_bytes)}"
        )
        if not machine.cache_is_used:
            cache += "; NOT USED"
    lines = [_line(name, version) for name, version in machine.versions.items()]
    lines += [
        _line("system", machine.system),
        _line(
            "processor",
            f"{machine.processor}, {machine.usable_processors} of {machine.processors} usable",
        ),
        _line("memory", format_bytes(machine.memory_bytes)),
        _line("kernels", f"CRC-32C {machine.crc32c_kernel}, varints {machine.varint_kernel}"),
        _line("inflates", machine.inflates_with or "nothing: there is no zlib"),
        _line("index cache", cache),
    ]
    return lines + [_line("set", f"{name}={value}") for name, value in machine.settings.items()]


def _data_lines(data: Data) -> list[str]:
    lines = [_line("shards", f"{data.shards:,}, {format_bytes(data.bytes)}")]
    if data.records is not None:
        lines.append(_line("records", f"{data.records:,}"))
        lines.append(_line("compression", ", ".join(data.compression)))
    for place in data.places:
        how = "mapped" if place.is_mapped else "read with pread"
        lasts = "" if place.identity_lasts else "; a change is noticed by size and time alone"
        if place.request_ms is not None:
            takes = f"a request takes {place.request_ms:.1f} ms"
            lines.append(_line("bucket", f"{place.mounted_at}: {takes}{lasts}"))
            continue
        lines.append(_line("filesystem", f"{place.filesystem} at {place.mounted_at}: {how}{lasts}"))
    for folder, count in data.indexes.items():
        lines.append(_line("indexes", f"{count:,} in {folder}"))
    if data.no_index is not None:
        lines.append(_line("indexes", f"not for all shards: {data.no_index}"))
    return lines
