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


_PLAN, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_NUMBERS = ctypes.POINTER(_NUMBER)
_BYTES = ctypes.c_char_p, ctypes.c_size_t  # a text, and its length

# The result of each call, and its arguments.
_CALLS: dict[str, tuple[Any, ...]] = {
    "tfrfast_open_plan": (_PLAN, *_BYTES, _NUMBER, *_BYTES, PROGRESS, *_BYTES),
    "tfrfast_open_described": (_PLAN, *_BYTES, PROGRESS, *_BYTES),
    "tfrfast_keep_open": (_PLAN, *_BYTES),
    "tfrfast_close_plan": (None, _PLAN),
    "tfrfast_plan_source": (ctypes.c_void_p, _PLAN, ctypes.POINTER(ctypes.c_size_t)),
    "tfrfast_plan_damage": (ctypes.c_char_p, _PLAN),
    "tfrfast_plan_sizes": (ctypes.c_size_t, _PLAN, _NUMBERS, ctypes.c_size_t),
    "tfrfast_plan_counts": (None, _PLAN, *_BYTES, _NUMBERS),
    "tfrfast_plan_step_count": (_NUMBER, _PLAN, *_BYTES),
    "tfrfast_remote_client_table": (ctypes.c_void_p,),
    "tfrfast_hand_out_views": (None, ctypes.c_int),
}

calls = ctypes.CDLL(str(_PATH))
for _name, (_result, *_arguments) in _CALLS.items():
    getattr(calls, _name).restype, getattr(calls, _name).argtypes = _result, _arguments
client.start_when_asked(calls.tfrfast_remote_client_table())


#: True if Ctrl-C ends the ops' waits for a network.
are_waits_ended = False


def end_waits_at_interrupts() -> None:
    """Lets Ctrl-C end the ops' waits for a network. Call it before URLs are opened."""
    global are_waits_ended
    are_waits_ended = True
    client.end_waits_at_interrupts(calls.tfrfast_remote_client_table())


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
#: Lets records become views of pooled memory, or strings of their own.
hand_out_views = calls.tfrfast_hand_out_views
hand_out_views(COUNTS_VIEWS)
