"""`python -m benchmarks.support`: tries every operation and writes docs/support.md."""

from __future__ import annotations

import sys
import warnings

from benchmarks.support.page import PAGE, expected, render, try_one
from benchmarks.support.trial import Outcome


def main() -> None:
    warnings.simplefilter("ignore")
    outcomes: dict[str, dict[str, Outcome]] = {}
    for section, operations in expected().items():
        outcomes[section] = {}
        for operation in operations:
            outcomes[section][operation] = found = try_one(section, operation)
            print(f"{section}  {operation}  {found.where}  {found.why}", file=sys.stderr, flush=True)
    PAGE.write_text(render(outcomes))


if __name__ == "__main__":
    main()
