"""All rules, by the type of the op."""

from __future__ import annotations

from tfrfast.tensorflow.lifting.rules.asserting import ASSERTING
from tfrfast.tensorflow.lifting.rules.casting import CASTING
from tfrfast.tensorflow.lifting.rules.decoding import DECODING
from tfrfast.tensorflow.lifting.rules.division import DIVISION
from tfrfast.tensorflow.lifting.rules.elementwise import ELEMENTWISE
from tfrfast.tensorflow.lifting.rules.gathering import GATHERING
from tfrfast.tensorflow.lifting.rules.lookups import LOOKUPS
from tfrfast.tensorflow.lifting.rules.node import Rule
from tfrfast.tensorflow.lifting.rules.reductions import REDUCTIONS
from tfrfast.tensorflow.lifting.rules.shapes import SHAPES
from tfrfast.tensorflow.lifting.rules.strings import STRINGS

RULES: dict[str, Rule] = {
    **ELEMENTWISE,
    **DIVISION,
    **CASTING,
    **SHAPES,
    **GATHERING,
    **REDUCTIONS,
    **STRINGS,
    **LOOKUPS,
    **DECODING,
    **ASSERTING,
}

#: Ops that need no rule, but may only make values that all rows share.
CONSTANTS = frozenset(["Const", "Fill", "LinSpace", "Range"])

#: Ops that depend only on the shape of a row, which is the same for all rows.
SHAPES_OF_ROWS = frozenset(["Rank", "Shape", "Size"])

_IMAGE = "works on one image at a time"
_CHOICE = "chooses what to run, row by row"
_RANDOM = "draws other random numbers for a batch than for its rows"

#: The reasons why common ops have no rule.
REASONS = {
    "Case": _CHOICE,
    "DecodeAndCropJpeg": _IMAGE,
    "DecodeImage": _IMAGE,
    "DecodeJpeg": _IMAGE,
    "DecodePng": _IMAGE,
    "EagerPyFunc": "runs Python",
    "If": _CHOICE,
    "LogUniformCandidateSampler": _RANDOM,
    "PyFunc": "runs Python",
    "RandomShuffle": _RANDOM,
    "RandomStandardNormal": _RANDOM,
    "RandomUniform": _RANDOM,
    "RandomUniformInt": _RANDOM,
    "ReadVariableOp": "reads a variable, which may change between two rows",
    "StatelessIf": _CHOICE,
    "StatelessWhile": _CHOICE,
    "StringSplitV2": "makes a different number of parts of each row",
    "TruncatedNormal": _RANDOM,
    "Where": "makes a different number of values of each row",
    "While": _CHOICE,
}
