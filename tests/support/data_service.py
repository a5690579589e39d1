"""A tf.data service with workers in processes of their own."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

CHILD = str(Path(__file__).with_name("tensorflow_child.py"))


def free_ports(count: int) -> list[int]:
    """Free ports, which the system gives to no other program meanwhile."""
    first = 32_768  # of the ports that the system gives
    with contextlib.suppress(OSError):
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    below = range(max(1024, first - 20_000), first)
    given = iter(random.SystemRandom().sample(below, len(below)))
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            port = next(given, 0)  # 0: any port that the system gives
            each = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError if port else ()):
                each.bind(("localhost", port))
                ports.append(int(each.getsockname()[1]))
        return ports


class DataService:
    """A tf.data service of two worker processes. target() waits for their start."""

    def __init__(self) -> None:
        import tensorflow as tf

        service = tf.data.experimental.service
        ports = free_ports(2)
        addresses = [f"localhost:{port}" for port in ports]
        self._dispatcher = service.DispatchServer(
            service.DispatcherConfig(worker_addresses=addresses)
        )
        address = self._dispatcher.target.split("://")[1]
        self._workers = [
            subprocess.Popen(
                [sys.executable, CHILD, "--worker", address, str(port)], stdin=subprocess.PIPE
            )
            for port in ports
        ]

    def target(self) -> str:
        """Returns the address of the service, once all workers have started."""
        while self._dispatcher._num_workers() < len(self._workers):
            alive = all(worker.poll() is None for worker in self._workers)
            assert alive, "a worker ended by itself"
            time.sleep(0.05)
        return str(self._dispatcher.target)

    def stop(self) -> None:
        for worker in self._workers:
            worker.communicate(b"")  # a worker ends with its input
