"""Ops on strings. Each string is treated on its own."""

from __future__ import annotations

from tfrfast.tensorflow.lifting.rules.node import Node, Write


def _each(node: Node) -> Write:
    """The op itself. Its options, such as a pattern, are the same for all rows."""
    node.is_only_per_row(0)
    return lambda batch, inputs: batch.copy(node, inputs)


STRINGS = {
    "AsString": _each,
    "EncodeBase64": _each,
    "RegexFullMatch": _each,
    "RegexReplace": _each,
    "StaticRegexFullMatch": _each,
    "StaticRegexReplace": _each,
    "StringLength": _each,
    "StringLower": _each,
    "StringStrip": _each,
    "StringToHashBucket": _each,
    "StringToHashBucketFast": _each,
    "StringToHashBucketStrong": _each,
    "StringUpper": _each,
}
