"""``python -m rtxlib`` is ``rtx``."""

from rtxlib.cli import main

main()
