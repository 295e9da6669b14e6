"""`python -m benchmarks.hida [FIGURES.json]`: writes docs/hida.md and its pictures anew, from the kept figures or from
those of a file that `penstock bench hida --json` wrote, which are then the kept ones."""

from __future__ import annotations

import sys

from benchmarks.hida.page import WRITTEN

if __name__ == "__main__":
    WRITTEN.renew(sys.argv[1:])
