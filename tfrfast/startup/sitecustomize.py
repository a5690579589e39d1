"""Python imports this when it starts under `tfrfast run`, because its folder is on PYTHONPATH.

Removes the folder from the path, runs the environment's own `sitecustomize`, and waits for the
import of TensorFlow. So the program and its child processes see the same paths, modules and
variables as without tfrfast.
"""

import importlib
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _without_our_folder() -> None:
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != _FOLDER]
    ours, _, others = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if os.path.abspath(ours) == _FOLDER:
        if others:
            os.environ["PYTHONPATH"] = others
        else:
            del os.environ["PYTHONPATH"]


def _import_the_environments_own() -> None:
    ours = sys.modules.pop(__name__)
    importlib.invalidate_caches()
    try:
        importlib.import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = ours


_without_our_folder()
try:
    _import_the_environments_own()
finally:  # Python reports an error of the environment's own module and starts the program
    from tfrfast.startup.waiting import accelerate_when_imported

    accelerate_when_imported()
