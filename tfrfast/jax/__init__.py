"""JAX: batches as device arrays. Batches and columns are pytrees. Nothing needs TensorFlow."""

from tfrfast.jax import _installed  # noqa: F401  # first: it says how to install JAX
from tfrfast.jax.loader import Loader
from tfrfast.jax.trees import register

__all__ = ["Loader"]

register()
