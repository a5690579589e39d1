"""The op library: loaded into TensorFlow once a process, and called directly through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfrfast.storage.remote import client

_PATH = Path(__file__).resolve().parents[1] / "_tensorflow_ops.so"

# The ops' Python wrappers. TensorFlow sees only ops that are registered while it loads a library,
# so loading must come first.
ops: Any = tf.load_op_library(str(_PATH))

PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)


def _declare(calls: ctypes.CDLL) -> ctypes.CDLL:
    def declare(name: str, result: Any, *arguments: Any) -> None:
        call = getattr(calls, name)
        call.restype, call.argtypes = result, list(arguments)

    plan = ctypes.c_void_p
    declare(
        "tfrfast_open_plan",
        plan,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int64,
        ctypes.c_char_p,
        ctypes.c_size_t,
        PROGRESS,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    declare(
        "tfrfast_open_described",
        plan,
        ctypes.c_char_p,
        ctypes.c_size_t,
        PROGRESS,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    declare("tfrfast_close_plan", None, plan)
    declare("tfrfast_keep_open", plan, ctypes.c_char_p, ctypes.c_size_t)
    declare("tfrfast_plan_source", ctypes.c_void_p, plan, ctypes.POINTER(ctypes.c_size_t))
    declare("tfrfast_plan_damage", ctypes.c_char_p, plan)
    numbers = ctypes.POINTER(ctypes.c_int64)
    declare("tfrfast_plan_record_count", ctypes.c_int64, plan)
    declare("tfrfast_plan_file_records", ctypes.c_size_t, plan, numbers, ctypes.c_size_t)
    declare("tfrfast_plan_file_bytes", ctypes.c_int64, plan)
    declare("tfrfast_plan_stream_bytes", ctypes.c_int64, plan)
    declare("tfrfast_remote_client_table", ctypes.c_void_p)
    declare("tfrfast_plan_step_count", ctypes.c_int64, plan, ctypes.c_char_p, ctypes.c_size_t)
    declare("tfrfast_hand_out_views", None, ctypes.c_int)
    declare("tfrfast_open_source_count", ctypes.c_int64)
    return calls


calls = _declare(ctypes.CDLL(str(_PATH)))
client.start_when_asked(calls.tfrfast_remote_client_table())


#: True if Ctrl-C ends the ops' waits for a network.
are_waits_ended = False


def end_waits_at_interrupts() -> None:
    """Lets Ctrl-C end the ops' waits for a network. Call it before URLs are opened."""
    global are_waits_ended
    are_waits_ended = True
    client.end_waits_at_interrupts(calls.tfrfast_remote_client_table())


def open_source_count() -> int:
    """Returns the number of open sources of this process."""
    return int(calls.tfrfast_open_source_count())


def hand_out_views(yes: bool) -> None:
    """Lets records become views of pooled memory, or strings of their own."""
    calls.tfrfast_hand_out_views(yes)


@contextlib.contextmanager
def private_session() -> Iterator[Any]:
    """Yields a graph and a session of their own.

    Eager execution would start the runtime, which the user could then no longer configure.
    """
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, use_per_session_threads=True)
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        yield session


#: True if the runtime counts the references of a string that is a view: releases do from TensorFlow
#: 2.21 on. Before, a copy would outlive its memory.
COUNTS_VIEWS = (
    tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 21) and "dev" not in tf.__version__
)
hand_out_views(COUNTS_VIEWS)
