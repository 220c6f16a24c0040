"""`python -m ptwm`."""

import sys

from ptwm.cli import main

if __name__ == "__main__":
    sys.exit(main())
