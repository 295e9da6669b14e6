"""Lanes fitted to a pace: every kernel gets what it needs to keep up, and the pace is what the device holds."""

from dse.fitting.descent import Fitted, fit
from dse.fitting.pacing import Fitter
from dse.fitting.walks import Walk

__all__ = ["Fitted", "Fitter", "Walk", "fit"]
