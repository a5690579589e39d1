"""Ray runs on this machine: tasks import the tested tfrfast, and a cluster has several nodes."""

from __future__ import annotations

from typing import Any

import pytest

import tfrfast as tfr

pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)


def _count(paths: list[str]) -> tuple[str, int]:
    return tfr.__file__, len(tfr.Reader(paths))


def test_tasks_have_our_package(local_ray: Any, shards: list[str]) -> None:
    task = local_ray.remote(_count)
    assert local_ray.get(task.remote(shards)) == (tfr.__file__, 1500)


def test_a_cluster_has_nodes(cluster: Any, shards: list[str]) -> None:
    import ray

    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    task = ray.remote(_count)
    assert ray.get([task.remote(shards) for _ in range(4)]) == [(tfr.__file__, 1500)] * 4
