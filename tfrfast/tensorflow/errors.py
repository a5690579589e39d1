"""Errors of the op library as TensorFlow's exceptions."""

from __future__ import annotations

import tensorflow as tf


def exception_from(text: str) -> Exception:
    """Returns the exception for "<code> <message>"."""
    code, _, message = text.partition(" ")
    kind = tf.compat.v1.errors.exception_type_from_error_code(int(code))
    error: Exception = kind(None, None, message)
    return error
