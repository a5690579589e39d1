"""JAX: batches and their columns are pytrees. Nothing here needs TensorFlow."""

from tfrfast.jax import _installed  # noqa: F401  # first: it says how to install JAX
from tfrfast.jax.trees import register

__all__: list[str] = []

register()
