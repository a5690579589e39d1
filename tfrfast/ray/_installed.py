"""Says how to install Ray if it is missing, or lacks the parts that Ray Data needs."""

import importlib.util

try:
    import ray  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "ray":
        raise
    needed: str | None = "ray"
else:
    needed = None if importlib.util.find_spec("pyarrow") else "pyarrow"

if needed:
    raise ModuleNotFoundError(
        "tfrfast.ray needs Ray with Ray Data: pip install 'ray[data]'", name=needed
    )
