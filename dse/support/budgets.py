"""What a search may spend where more time would only make a good answer better: the defaults of options."""

from __future__ import annotations

DEFAULT_GAP = 1.0
"""Percent above the lower bound of the first objective at which a search ends."""

MOST_USUAL_TRIALS = 128
"""No search makes more of its own accord."""

SIMULATIONS = 400
"""Of a design, to make its FIFOs as shallow as they can be."""

QUICKLY_MODELLED = 12
"""Kernels up to which a setting takes no time to look at."""
