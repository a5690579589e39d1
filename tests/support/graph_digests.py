"""A digest of a dataset's graph that ignores names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

# TensorFlow's fingerprints leave out these inputs, which seed an order.
_SEEDS = {"ShuffleAndRepeatDatasetV2": (2, 3, 5), "ShuffleDatasetV3": (2, 3, 4)}


def graph_digest(dataset: Any) -> str:
    """Returns a digest of the graph, which does not depend on the names of nodes and functions."""
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2

    text = tf.raw_ops.DatasetToGraphV2(
        input_dataset=dataset._variant_tensor, external_state_policy=0, strip_device_assignment=True
    )
    graph = graph_pb2.GraphDef.FromString(text.numpy())
    nodes = {node.name: node for node in graph.node}
    digests = _Digests({each.signature.name: each for each in graph.library.function})
    returned = next(node for node in graph.node if node.op == "_Retval")
    return digests.of_nodes(nodes, [])(returned.input[0])


class _Digests:
    def __init__(self, functions: dict[str, Any]) -> None:
        self._functions = functions
        self._known: dict[str, str] = {}

    def of_nodes(self, nodes: dict[str, Any], arguments: list[str]) -> Callable[[str], str]:
        known = {name: f"argument {number}" for number, name in enumerate(arguments)}

        def digest(reference: str) -> str:
            name, _, output = reference.lstrip("^").partition(":")
            if name not in known:
                node = nodes[name]
                left_out = _SEEDS.get(node.op, ())
                inputs = [digest(each) for i, each in enumerate(node.input) if i not in left_out]
                known[name] = _hash(node.op, self._of_attributes(node.attr), *inputs)
            return known[name] + output

        return digest

    def _of_attributes(self, attributes: Any) -> str:
        kept = sorted(key for key in attributes if key != "metadata" and not key.startswith("_"))
        return _hash(*(key + self._of_attribute(attributes[key]) for key in kept))

    def _of_attribute(self, value: Any) -> str:
        name = value.func.name
        return (
            self._of_function(name) if name else value.SerializeToString(deterministic=True).hex()
        )

    def _of_function(self, name: str) -> str:
        if name not in self._known:
            function = self._functions[name]
            nodes = {node.name: node for node in function.node_def}
            digest = self.of_nodes(nodes, [each.name for each in function.signature.input_arg])
            results = [function.ret[each.name] for each in function.signature.output_arg]
            self._known[name] = _hash(*map(digest, results))
        return self._known[name]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
