"""TensorFlow's parsers as judges of ours: the same values, or both refuse.

They run in a process of their own, because damaged records crash them: TensorFlow (seen with 2.15
and 2.21) reads past the end of a record whose lengths are wrong. A crash is taken as a refusal.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

import tfrfast as tfr
from patience import PATIENCE_S

# The limit of TensorFlow's address space. Damaged records may make TensorFlow allocate too much.
ADDRESS_SPACE = 16 << 30

Plain = Any  # values that compare with ==, of either library
Outcome = tuple[Plain, str]  # the parsed values, or None and the message of the refusal


def _plain_values(values: Any) -> Plain:
    array = np.asarray(values)
    return array.tolist() if array.dtype == object else (array.dtype.str, array.tobytes())


def as_plain(column: Any) -> Plain:
    if isinstance(column, dict):
        return {name: as_plain(part) for name, part in column.items()}
    if isinstance(column, tuple):
        return tuple(map(as_plain, column))
    kind = type(column).__name__
    if kind in ("Sparse", "SparseTensor"):
        parts = (column.indices, column.values, column.dense_shape)
        return "sparse", *map(_plain_values, parts)
    if kind in ("Ragged", "RaggedTensor"):
        return "ragged", repr(column.tolist() if kind == "Ragged" else column.to_list())
    return "dense", tuple(column.shape), _plain_values(column)


def ours(parser: str, records: list[bytes], *specs: Any) -> Outcome:
    try:
        return as_plain(getattr(tfr, parser)(records, *specs)), ""
    except tfr.FeatureError as error:
        return None, str(error)


def _answer_questions(questions: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    # Each thread reserves address space, and there would be two for each processor.
    os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "2"
    import tensorflow as tf

    # TensorFlow puts the record into its message, which need not be UTF-8.
    refusals = (
        tf.errors.InvalidArgumentError,
        tf.errors.ResourceExhaustedError,
        UnicodeDecodeError,
    )
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # last words
    with contextlib.suppress(EOFError):
        while True:
            parser, records, specs = questions.recv()
            try:
                parse = getattr(tf.io, parser)
                answer = as_plain(parse(tf.constant(records, tf.string), *specs)), ""
            except refusals as error:
                answer = None, str(error)
            questions.send(answer)


class Oracle:
    """Answers with the result of `tf.io.<parser>(records, *specs)`."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._questions: Connection

    def __call__(self, parser: str, records: list[bytes], *specs: Any) -> Outcome:
        if self._process is None:
            self._start()
        try:
            self._questions.send((parser, records, specs))
            if not self._questions.poll(PATIENCE_S):
                self._stop()  # a late answer would count for the next question
                raise TimeoutError(f"TensorFlow does not answer: {records!r} {specs!r}")
            return self._questions.recv()
        except (EOFError, ConnectionError):
            code = self._ended()
            # A code above 0 means a Python exception, which no record can cause.
            assert code < 0, f"exit code {code} at {records!r} {specs!r}"
            return None, f"TensorFlow crashed (signal {-code})"

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._questions, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_answer_questions, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _ended(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        self._questions.close()
        process.join(PATIENCE_S)
        assert process.exitcode is not None
        return process.exitcode

    def _stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._ended()


tensorflow = Oracle()  # its process starts with the first question and ends with this process


def assert_parsed_the_same(parser: str, records: list[bytes], *specs: Any) -> Plain:
    """Returns the values, which are equal in both; None if both refuse the records."""
    our_values, our_text = ours(parser, records, *specs)
    their_values, their_text = tensorflow(parser, records, *specs)
    assert our_values == their_values, (
        f"{records!r} {specs!r}\nours: {our_text}\nTensorFlow's: {their_text}"
    )
    return our_values
