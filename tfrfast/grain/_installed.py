"""Says how to install Grain where it is missing, or JAX, with which it takes batches apart."""

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
