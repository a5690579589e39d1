"""Releases: actions are pinned, all Pythons are built, and a tag must fit the version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tfrfast as tfr

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

if not WORKFLOWS:
    pytest.skip("there are no workflows: run the tests in a checkout", allow_module_level=True)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_hash_and_say_their_version(workflow: Path) -> None:
    used = re.findall(r"uses: *(.*)", workflow.read_text(encoding="utf-8"))
    assert used
    pinned = re.compile(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [each for each in used if not pinned.fullmatch(each)] == []


def test_a_hash_belongs_to_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for workflow in WORKFLOWS:
        for pin, version in re.findall(r"@([0-9a-f]{40}) # (\S+)", workflow.read_text()):
            versions.setdefault(pin, set()).add(version)
    assert all(len(each) == 1 for each in versions.values()), versions


def test_every_supported_python_gets_a_wheel() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', project)
    built = re.search(r"^build = \[(.*)\]$", project, re.MULTILINE)
    assert built is not None
    assert re.findall(r"cp3(\d+)-", built[1]) == supported
    assert f'requires-python = ">=3.{supported[0]}"' in project


def test_a_tag_must_be_the_packages_version() -> None:
    done = subprocess.run(
        [ROOT / "tools" / "check_release", "v99.0.0"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"is {tfr.__version__}." in done.stderr
    subprocess.run([ROOT / "tools" / "check_release", f"v{tfr.__version__}"], check=True)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_the_oldest_numpy_is_the_one_that_is_promised() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (promised,) = (each for each in project["project"]["dependencies"] if "numpy" in each)
    oldest = [each for each in project["dependency-groups"]["oldest-numpy"] if "numpy" in each]
    assert oldest[0].startswith(promised.replace(">=", "=="))
