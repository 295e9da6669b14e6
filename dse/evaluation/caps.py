"""What of each resource a design may take: what the platform leaves to it, or less where the user says so."""

from __future__ import annotations

from math import floor

from penstock.compiler.platforms import RESOURCE_NAMES, Platform, Resources
from penstock.dse.evaluation.objectives import Goal

_ROUNDING = 1e-9
"""A count that was turned into a share and back is that count."""


def allowed_by(goal: Goal, platform: Platform) -> Resources:
    most = platform.limits.as_dict()
    for limit in goal.limits:
        if limit.name in RESOURCE_NAMES and limit.sense == "<=":
            whole = platform.limits.as_dict()[limit.name]
            most[limit.name] = min(most[limit.name], floor(whole * min(1.0, limit.bound) + _ROUNDING * (whole + 1)))
    return Resources(**most)
