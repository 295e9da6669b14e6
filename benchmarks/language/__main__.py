"""`python -m benchmarks.language [FIGURES.json]`: writes docs/llm.md and its pictures anew, from the kept figures or
from those of a file that `penstock bench llm --json` wrote, which are then the kept ones."""

from __future__ import annotations

import sys

from benchmarks.language.page import WRITTEN

if __name__ == "__main__":
    WRITTEN.renew(sys.argv[1:])
