"""Ctrl-C at any moment: exit code 130, no traceback, nothing half written."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from cli_files import write_examples
from record_files import write_rows

# Sends SIGINT at the given import, counted from where the program's own code begins.
AT_IMPORT = """
import os, signal, sys
sys.path[:0] = {path!r}
wanted = {wanted}
count = 0

class Finder:
    def find_spec(self, name, path=None, target=None):
        global count
        count += 1
        if count == wanted:
            os.kill(os.getpid(), signal.SIGINT)

import tfrfast.cli.interruption
sys.argv[1:] = {arguments!r}
sys.meta_path.insert(0, Finder())
from tfrfast.cli import main
status = main()
sys.stdout.flush()
print(count, file=sys.stderr)
sys.exit(status)
"""

# Sends SIGINT at the program's call number {times} of {target}.
AT_CALL = """
import os, signal, sys
sys.path[:0] = {path!r}
import {module} as module
{before}
original = {target}
left = {times}

def interrupted(*arguments, **options):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return original(*arguments, **options)

{target} = interrupted
sys.argv[1:] = {arguments!r}
from tfrfast.cli import main
sys.exit(main())
"""


def run_script(
    script: str, handler: Any = signal.default_int_handler
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        # pytest may ignore SIGINT for its children, as a shell does for what runs behind it
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )


def imports_of(arguments: list[str]) -> int:
    done = run_script(AT_IMPORT.format(path=sys.path, wanted=0, arguments=arguments))
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1])


@pytest.mark.parametrize("command", ["count", "cat", "shuffle"])
def test_while_modules_are_imported(tmp_path: Path, command: str) -> None:
    shards = write_examples(tmp_path / "data")
    out = ["--out", str(tmp_path / "out/x"), "--num-shards", "2"] if command == "shuffle" else []
    arguments = [command, *out, *shards]
    total = imports_of(arguments)
    assert total > 20
    for wanted in {1, 2, total // 4, total // 2, total * 3 // 4, total}:
        for made in tmp_path.glob("out/x-*"):
            made.unlink()
        script = AT_IMPORT.format(path=sys.path, wanted=wanted, arguments=arguments)
        done = run_script(script)
        assert (done.returncode, done.stderr) == (130, "tfrfast: interrupted\n"), wanted
        assert len(list(tmp_path.glob("out/x-*"))) in (0, 2)


def test_between_two_pieces_of_output_lines_are_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "shard")
    write_rows(path, ({"x": number} for number in range(20_000)))
    script = AT_CALL.format(
        path=sys.path,
        module="tfrfast.cli.json_lines",
        before="",
        target="module.JsonLines.lines",
        times=3,
        arguments=["cat", "--json", "--records", ":", path],
    )
    done = run_script(script)
    assert (done.returncode, done.stderr) == (130, "tfrfast: interrupted\n")
    lines = done.stdout.splitlines(keepends=True)
    assert 0 < len(lines) < 20_000
    assert all(line.startswith('{"record"') and line.endswith("}\n") for line in lines)


def test_an_interrupted_shuffle_says_that_it_goes_on(tmp_path: Path) -> None:
    shards = write_examples(tmp_path / "data")
    # Memory for less than the data, so that they go through intermediate files.
    arguments = ["shuffle", *shards, "--out", str(tmp_path / "out/x"), "--num-shards", "5"]
    script = AT_CALL.format(
        path=sys.path,
        module="tfrfast.jobs.shuffling.job",
        before="import tfrfast.jobs.shuffling.shuffle\ntfrfast.jobs.shuffling.shuffle._MIN_MEMORY_BYTES = 1\n"
        "module._MIN_BUFFER_BYTES = 1\ntfrfast.jobs.shuffling.shuffle._memory = lambda given: 4000",
        target="module.SortedRows.write_shard",
        times=3,
        arguments=arguments,
    )
    done = run_script(script)
    assert done.returncode == 130
    assert done.stderr == (
        "tfrfast: interrupted. The same command goes on where this one stopped.\n"
    )
    assert not list(tmp_path.glob("out/x-*"))
    uninterrupted = run_script(script.replace("left = 3", "left = 0"))
    assert uninterrupted.returncode == 0, uninterrupted.stderr
    assert len(tfr.Reader(tmp_path / "out/x-*")) == 20


def test_a_shuffle_in_memory_begins_again(tmp_path: Path) -> None:
    shards = write_examples(tmp_path / "data")
    script = AT_CALL.format(
        path=sys.path,
        module="tfrfast.jobs.shuffling.job",
        before="",
        target="module.SortedRows.write_shard",
        times=1,
        arguments=["shuffle", *shards, "--out", str(tmp_path / "out/x"), "--num-shards", "5"],
    )
    done = run_script(script)
    assert (done.returncode, done.stderr) == (130, "tfrfast: interrupted\n")
    assert not [each for each in tmp_path.glob("out*/**/*") if each.is_file()]


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    shards = write_examples(tmp_path / "data")
    script = AT_IMPORT.format(path=sys.path, wanted=5, arguments=["count", *shards])
    done = run_script(script, signal.SIG_IGN)
    assert (done.returncode, done.stdout) == (0, "20\n")
