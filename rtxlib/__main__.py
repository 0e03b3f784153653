"""``python -m rtxlib`` is ``rtx``."""

import sys

try:
    from rtxlib.cli import main
except KeyboardInterrupt:
    print("Interrupted.", file=sys.stderr)
    sys.exit(130)

main()
