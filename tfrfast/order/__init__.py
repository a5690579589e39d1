"""The orders, each in a file of its own, and the plan, which cuts an order into batches."""

from tfrfast.order.block_shuffle import BlockShuffle
from tfrfast.order.by_tokens import ByTokens
from tfrfast.order.counted import CountedBatching
from tfrfast.order.in_order import InOrder
from tfrfast.order.mixture import Mixture, Weight, Weights
from tfrfast.order.order import Order
from tfrfast.order.packed import Fill, Packed
from tfrfast.order.plan import Batching, Plan
from tfrfast.order.shuffle import Shuffle
from tfrfast.order.weighted import Weighted

__all__ = [
    "Batching",
    "BlockShuffle",
    "ByTokens",
    "CountedBatching",
    "Fill",
    "InOrder",
    "Mixture",
    "Order",
    "Packed",
    "Plan",
    "Shuffle",
    "Weight",
    "Weighted",
    "Weights",
]
