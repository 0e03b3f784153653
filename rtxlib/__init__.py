"""Recurrent and standard transformers for text classification, compared."""

import os
import sys
from pathlib import Path

__version__ = "0.1.0"

# Idle OpenMP threads sleep instead of spinning. On a machine whose cores are busy, spinning threads wait for partners that
# are not scheduled: a training step was measured 25 times slower. This, and the next, must be set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# A CPU's matrix products are compiled for each shape and kept, 1,024 of them by default. Batches without padding have a shape
# for every length of text, about twenty products each; kept whole, training was 5 % faster.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "4096")

# `import rtxlib` makes AutoModel and pipeline know this architecture. Programs that only start others are the exception:
# they load torch when they need it, so that `rtx --help` answers at once.
if Path(sys.argv[0] if sys.argv else "").stem not in ("rtx", "-m", "jupyter", "jupyter-lab"):
    import rtxlib.models  # noqa: F401
