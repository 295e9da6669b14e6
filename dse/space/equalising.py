"""How far FIFOs may cost time: a parameter of the space where somebody asks for few bits of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.compiler.design import Design
from penstock.dse.space.options import TilingOptions

EQUALISATION = "equalisation"
_CHOICES = (0, 25, 50, 100)
"""Percent of the way from the normal to the conservative equalisation."""


def equalisation_choices(options: TilingOptions) -> dict[str, tuple[int, ...]]:
    """The parameter, where the user has not decided and bits of FIFOs matter."""
    return {EQUALISATION: _CHOICES} if options.weighs_fifos and options.equalisation is None else {}


def equalised(design: Design, settings: Mapping[str, int | str | bool], options: TilingOptions) -> Design:
    """The design with what the user, or else a setting, says of it."""
    given = settings.get(EQUALISATION, 0) if options.equalisation is None else options.equalisation
    return replace(design, equalisation=int(given))
