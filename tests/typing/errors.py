"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from typing_extensions import assert_type

import tfrfast as tfr

error = tfr.CorruptRecordError("text", path="shard", record=3, offset=99)
assert_type(error.path, str | None)
assert_type(error.record, int | None)
assert_type(error.offset, int | None)
as_base: tfr.RecordError = error
as_value_error: ValueError = tfr.FeatureError("text")
as_warning: type[Warning] = tfr.SlowPathWarning

tfr.TruncatedRecordError("text", record="three")  # type: ignore[arg-type]
tfr.RecordError("text", "shard")  # type: ignore[call-arg]
