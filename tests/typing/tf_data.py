"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from typing_extensions import assert_type

import tfrfast as tfr

explanation = tfr.explain(tfr.TFRecordDataset("train-*", on_corruption="skip"))
assert_type(str(explanation), str)
for step in explanation.steps:
    assert_type(step.call, str)
    assert_type(step.fused, bool)
    assert_type(step.why, str)
    assert_type(step.instead, str)

tfr.TFRecordDataset("train-*", on_corruption="leave out")  # type: ignore[arg-type]
