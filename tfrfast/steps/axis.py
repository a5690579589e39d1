"""The features with values for each step of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tfrfast import _native
from tfrfast.base.arguments import integer

__all__ = ["Along", "encoded_axis"]

#: A prefix that ends in "/", a feature's name, a list of both, or the number of values of a step by
#: feature.
Along = str | Iterable[str] | Mapping[str, int | None]

_MOST_VALUES = (1 << 32) - 1


def encoded_axis(along: Along) -> bytes:
    """Returns the axis in the form of the core and of step files."""
    names: dict[str, int | None]
    if isinstance(along, str):
        names = {along: None}
    elif isinstance(along, Mapping):
        names = dict(along)
    else:
        names = dict.fromkeys(along)
    prefixes, features = [], {}
    for name, values in sorted(names.items()):
        if not isinstance(name, str) or not name:
            raise TypeError(f"along must name features by str, not {name!r}.")
        if not name.endswith("/"):
            features[name] = 0 if values is None else integer(name, values, 1, _MOST_VALUES)
        elif values is None:
            prefixes.append(name)
        else:
            raise TypeError(f"{name!r} is a prefix: give the number of values for each feature.")
    if not names:
        raise ValueError('along names no feature: give a prefix, such as along="steps/".')
    return _native.step_axis(prefixes, features)
