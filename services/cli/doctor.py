"""`penstock doctor`: what this machine has, what it lacks, and what the lack means."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from penstock.services.upkeep.machine import examine


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Check what this machine has and lacks; exit code 1 if something indispensable is missing."""
    checks = list(examine())
    healthy = all(check.state != "problem" for check in checks)
    if as_json:
        print(json.dumps({"ok": healthy, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            advice = f"\n{'':>{width + 11}}{check.hint}" if check.hint else ""
            print(f"{check.state:<8} {check.name:<{width}}  {check.what}{advice}")
    return 0 if healthy else 1
