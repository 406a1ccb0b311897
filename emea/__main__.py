"""``python -m emea`` is the ``emea`` command."""

import sys

from emea.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
