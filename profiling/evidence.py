"""Where a number comes from. Figures of different evidence are never added up or ranked in silence."""

from __future__ import annotations

from typing import Literal, get_args

Evidence = Literal["modelled", "simulated", "open-rtl", "csynth", "cosim", "implemented", "board"]

EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
"""From the weakest to the strongest."""

RUNGS: tuple[Evidence, ...] = ("modelled", "simulated", "open-rtl", "csynth", "cosim")
"""What a search may judge its best designs by, from the weakest to the strongest."""
DEFAULT_RUNG: Evidence = "simulated"
