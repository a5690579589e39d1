"""A map() or filter() that traces at once, but is put after its records only when needed."""

from __future__ import annotations

from typing import Any, Literal

import tensorflow as tf

from tfrfast.tensorflow.lifting import internals


class ElementCall:
    """A call of map() or filter() on datasets whose elements are all alike.

    Its function is called once, for the first dataset. If that is made eagerly, an empty one takes
    its place: often only what the function does is needed, and to build the records takes longer
    than to trace it.
    """

    def __init__(
        self,
        method: Literal["filter", "map"],
        function: Any,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> None:
        self._method = method
        self._given = function, arguments, options
        self._traced: Any = None
        self._made: tuple[Any, Any] | None = None

    def traced(self, dataset: Any) -> Any:
        """Shows the elements and the function that `dataset` has after this call."""
        if tf.executing_eagerly():
            stand_in = self._call(_Empty(dataset.element_spec))
            if internals.can_be_moved(stand_in):
                self._traced = stand_in
                return stand_in
        made = self._call(dataset)
        self._made = dataset, made
        return made

    def __call__(self, dataset: Any) -> Any:
        if self._made is not None and self._made[0] is dataset:
            return self._made[1]
        if self._traced is None or not tf.executing_eagerly():
            return self._call(dataset)
        return internals.moved(self._traced, dataset)

    def _call(self, dataset: Any) -> Any:
        function, arguments, options = self._given
        call = getattr(tf.data.Dataset, self._method)
        return call(dataset, function, *arguments, **options)


class _Empty(tf.data.Dataset):  # type: ignore[misc]
    """A dataset without elements, which says that they are like `spec`."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        super().__init__(tf.data.Dataset.range(0)._variant_tensor)

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        return self._spec
