"""Recurrent and standard transformers for text classification, compared."""

import sys
from pathlib import Path

from rtxlib.process import tune

__version__ = "0.1.0"

tune()

# `import rtxlib` makes AutoModel and pipeline know this architecture. Programs that only start others are the exception:
# they load torch when they need it, so that `rtx --help` answers at once.
if Path(sys.argv[0] if sys.argv else "").stem not in ("rtx", "-m", "jupyter", "jupyter-lab"):
    import rtxlib.models  # noqa: F401
