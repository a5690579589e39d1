"""Says how to install PyTorch if it is missing."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "tfrfast.torch needs PyTorch: pip install torch", name="torch"
    ) from None
