from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Read when Ray is imported, here and in its workers.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
# The time that Ray Train waits for workers on a node that has just died.
os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "10"
os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"
# Starts no process that asks whether a cloud takes machines away.
os.environ["RAY_TRAIN_ENABLE_PREEMPTION_WATCHER"] = "0"

OBJECT_STORE_BYTES = 200 << 20


@pytest.fixture(autouse=True, scope="session")
def workers_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers keep the environment in which Ray was started. So the environment must not name the
    user's cache, and must name the folders of the tests' functions.
    """
    root = Path(__file__).resolve().parents[3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([os.environ["PYTHONPATH"], str(root)]))
        patch.setenv("TFRFAST_CACHE_DIR", str(tmp_path_factory.mktemp("workers-cache")))
        yield
        ray = pytest.importorskip("ray")
        ray.shutdown()


@pytest.fixture
def local_ray(workers_cache: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Ray with two processors. It keeps running for later tests, and so must its folder, in which
    workers look for modules first.
    """
    ray = pytest.importorskip("ray")
    if not ray.is_initialized():
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path_factory.getbasetemp())
            ray.init(
                address="local",
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                object_store_memory=OBJECT_STORE_BYTES,
            )
    return ray


@pytest.fixture
def cluster(workers_cache: None) -> Iterator[Any]:
    """A `ray.cluster_utils.Cluster` whose head has no processors. Its nodes are added by the test,
    which calls `ray.init(address=cluster.address)`.
    """
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    ray.shutdown()
    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            # A node is dead after five seconds without an answer, not after twenty.
            "_system_config": {
                "health_check_initial_delay_ms": 0,
                "health_check_period_ms": 1000,
                "health_check_failure_threshold": 5,
            },
        },
    )
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three shards of 1,500 records in all."""
    from example_files import write_examples

    folder: Path = tmp_path_factory.mktemp("ray")
    return write_examples(folder, [700, 1, 799])
