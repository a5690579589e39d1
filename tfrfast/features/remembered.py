"""Remembers compiled features, for callers that pass the same dict again and again."""

from __future__ import annotations

import threading
from typing import Any

from tfrfast.features import Features
from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.compiling import compile_features

__all__ = ["compile_once"]

_MAX_REMEMBERED = 16
_compiled: dict[int, tuple[dict[str, Any], CompiledFeatures]] = {}
_remembering = threading.Lock()


def compile_once(features: Features) -> CompiledFeatures:
    """Compiles `features`, unless the same dict was compiled before with the same specs."""
    key = id(features)
    known = _compiled.get(key)
    if known is not None:
        specs, compiled = known
        if len(specs) == len(features) and all(
            specs.get(name) is spec for name, spec in features.items()
        ):
            return compiled
    fresh = compile_features(features)
    with _remembering:
        while len(_compiled) >= _MAX_REMEMBERED:
            del _compiled[next(iter(_compiled))]
        _compiled[key] = (dict(features), fresh)
    return fresh
