"""Says how to install Grain, or JAX for pytrees of batches, if either is missing."""

try:
    import grain  # noqa: F401

    import tfrfast.jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("grain", "jax"):
        raise
    needed = {"grain": "Grain", "jax": "JAX"}[error.name]
    raise ModuleNotFoundError(
        f"tfrfast.grain needs {needed}: pip install grain jax", name=error.name
    ) from None
