"""Says how to install JAX if it is missing."""

try:
    import jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ModuleNotFoundError("tfrfast.jax needs JAX: pip install jax", name="jax") from None
