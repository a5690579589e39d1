"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from typing_extensions import assert_type

import tfrfast as tfr

assert_type(tfr.crc32c(b"bytes"), int)
assert_type(tfr.crc32c(bytearray(4), value=7), int)
assert_type(tfr.masked_crc32c(memoryview(b"bytes")), int)

tfr.crc32c("text")  # type: ignore[arg-type]
tfr.masked_crc32c(b"bytes", 7)  # type: ignore[call-arg]
