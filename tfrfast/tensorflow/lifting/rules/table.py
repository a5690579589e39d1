"""All rules, by the type of the op."""

from __future__ import annotations

from tfrfast.tensorflow.lifting.rules.decoding import DECODING
from tfrfast.tensorflow.lifting.rules.elementwise import ELEMENTWISE
from tfrfast.tensorflow.lifting.rules.gathering import GATHERING
from tfrfast.tensorflow.lifting.rules.lookups import LOOKUPS
from tfrfast.tensorflow.lifting.rules.node import Rule
from tfrfast.tensorflow.lifting.rules.reductions import REDUCTIONS
from tfrfast.tensorflow.lifting.rules.shapes import SHAPES
from tfrfast.tensorflow.lifting.rules.strings import STRINGS

RULES: dict[str, Rule] = {
    **ELEMENTWISE,
    **SHAPES,
    **GATHERING,
    **REDUCTIONS,
    **STRINGS,
    **LOOKUPS,
    **DECODING,
}

#: Ops that need no rule, but may only make values that all rows share.
CONSTANTS = frozenset(["Const", "Fill", "LinSpace", "Range"])

#: Ops that depend only on the shape of a row, which is the same for all rows.
SHAPES_OF_ROWS = frozenset(["Rank", "Shape", "Size"])
