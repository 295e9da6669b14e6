"""What a search may spend where more time would only make a good answer better: the defaults of options."""

from __future__ import annotations

SIMULATIONS = 400
"""Of a design, to make its FIFOs as shallow as they can be."""
