"""The steps of a run: import, explore (which fans out into trials), select, verify, package.

Light to import, since the API makes the graph: bodies, compiler and tools live elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from db.records import Model, NewStep

IMPORT, EXPLORE, TRIAL, SELECT, VERIFY, PACKAGE = "import", "explore", "trial", "select", "verify", "package"


def run_steps(model: Model, options: Mapping[str, Any]) -> tuple[NewStep, ...]:
    """What a run of a model begins with. `options` stay with the run, where every body finds them."""
    return (
        NewStep(IMPORT, IMPORT, "import"),
        NewStep(EXPLORE, EXPLORE, "explore", needs=(IMPORT,)),
        NewStep(SELECT, SELECT, "explore", needs=(EXPLORE,)),
        NewStep(VERIFY, VERIFY, "build", needs=(SELECT,)),
        NewStep(PACKAGE, PACKAGE, "build", needs=(VERIFY,)),
    )


def trial_steps(count: int) -> tuple[NewStep, ...]:
    """One step a trial. A trial that fails costs itself only; the selection sees what there is."""
    return tuple(
        NewStep(TRIAL, f"{TRIAL}/{number:04d}", "explore", {"number": number},
                needed_by=(SELECT,), may_fail=True)
        for number in range(count)
    )  # fmt: skip
