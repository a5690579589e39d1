"""`python -m tfrfast`."""

import sys

from tfrfast.cli import main

sys.exit(main())
