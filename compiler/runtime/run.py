"""Runs this package from the command line: `python run.py --help` lists what it can do."""

from penstock_runtime.command import main

if __name__ == "__main__":
    raise SystemExit(main())
