"""`python -m penstock_runtime`: the same as run.py."""

from .command import main

raise SystemExit(main())
