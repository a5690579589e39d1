"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from typing import Any

from typing_extensions import assert_type

import tfrfast as tfr
from tfrfast.loading.loader import LoaderStats

loader = tfr.Loader("data-*", 32, features={"x": tfr.FixedLen((), "int64")}, remainder="pad")
tfr.Loader("data-*", 32, features=["x", "y"])
tfr.Loader(tfr.Reader("data-*"), 32, features="infer")
assert_type(len(loader), int)
assert_type(loader.stats(), LoaderStats)
assert_type(loader.state_dict(), dict[str, Any])

assert_type(tfr.parse_example([b""], "infer"), tfr.Batch)
assert_type(tfr.parse_example(tfr.Reader("data-*")[:], ("x", "y")), tfr.Batch)
assert_type(tfr.infer_features([b""]), dict[str, tfr.FixedLen | tfr.VarLen])

tfr.Loader("data-*", 32, features=[1])  # type: ignore[list-item]
tfr.Loader("data-*", 32, features=True)  # type: ignore[arg-type]
tfr.parse_example(b"", "infer")  # type: ignore[arg-type]
