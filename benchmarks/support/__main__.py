"""`python -m benchmarks.support [OPERATION ...]`: tries every operation, or those that are named, and writes
docs/support.md."""

from __future__ import annotations

import sys
import warnings

from benchmarks.support.page import PAGE, expected, read, render, try_one
from benchmarks.support.trial import Outcome


def main(only: list[str]) -> None:
    warnings.simplefilter("ignore")
    kept = read(PAGE.read_text()) if only else {}
    outcomes: dict[str, dict[str, Outcome]] = {}
    for section, operations in expected().items():
        outcomes[section] = {}
        for operation in operations:
            known = kept.get(section, {}).get(operation)
            if known is None or operation in only:
                known = try_one(section, operation)
                print(f"{section}  {operation}  {known.where}  {known.why}", file=sys.stderr, flush=True)
            outcomes[section][operation] = known
    PAGE.write_text(render(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
