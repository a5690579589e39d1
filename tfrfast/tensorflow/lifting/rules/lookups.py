"""Lookups in tables that do not change."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError


def _find(node: Node) -> Write:
    node.is_only_per_row(1)
    if not is_static_lookup(node.op, node.captured.get(node.op.inputs[0].name)):
        raise NotVectorisedError("looks into a table that may change between two rows")
    return lambda batch, inputs: batch.copy(node, inputs)


def is_static_lookup(op: Any, table: Any) -> bool:
    """True if a lookup's table, the tensor outside the graph, is known and can never change.

    Inserts zero keys into the table. A table that can change accepts them, and a constant table
    refuses the insertion.
    """
    if not tf.is_tensor(table) or not hasattr(table, "numpy"):
        return False
    keys, values = op.get_attr("Tin"), op.get_attr("Tout")
    try:
        tf.raw_ops.LookupTableInsertV2(
            table_handle=table, keys=tf.zeros([0], keys), values=tf.zeros([0], values)
        )
    except tf.errors.UnimplementedError:
        return True
    except tf.errors.OpError:
        pass
    return False


LOOKUPS = {"LookupTableFindV2": _find}
