"""``python -m rtx`` is ``rtx``."""

import sys

try:
    from rtx.cli import main
except KeyboardInterrupt:
    print("Interrupted.", file=sys.stderr)
    sys.exit(130)

main()
