"""`python -m benchmarks.hida [FIGURES.json]`: writes docs/hida.md and its pictures anew, from the kept figures or from
those of a file that `penstock bench hida --json` wrote, which are then the kept ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.hida.page import FIGURES, read, write


def main(given: list[str]) -> None:
    if given:
        run = json.loads(Path(given[0]).read_text(encoding="utf-8"))
        FIGURES.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    write(read())


if __name__ == "__main__":
    main(sys.argv[1:])
