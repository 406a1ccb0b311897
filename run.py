"""``python run.py [-m] key=value ...`` is ``emea run [-m] key=value ...``."""

import sys

try:
    import emea.cli.run  # noqa: F401 (imports the packages that a run needs)
    from emea.cli.main import main
except ModuleNotFoundError as error:
    raise SystemExit(
        f"error: this Python has no {error.name}. Activate the project's environment "
        "(. .venv/bin/activate, after make run), or install the project: pip install -e ."
    ) from None

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
