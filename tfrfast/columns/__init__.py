"""The columns of a parsed batch: plain arrays if rows have one shape, otherwise these classes.

Every array that parsing makes is 64-byte aligned, writable, and accepted by DLPack consumers.
"""

from tfrfast.columns.arrays import Array
from tfrfast.columns.batch import Batch, Column
from tfrfast.columns.pictures import Pictures
from tfrfast.columns.ragged import Ragged
from tfrfast.columns.sparse import Sparse
from tfrfast.columns.strings import Bytes

__all__ = ["Array", "Batch", "Bytes", "Column", "Pictures", "Ragged", "Sparse"]
