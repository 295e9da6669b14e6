"""The space of a task program: its author has decided what runs where, so that one design is left."""

from __future__ import annotations

from functools import cached_property

from penstock.compiler.analysis.default_design import WeightStore
from penstock.compiler.design import Design
from penstock.dse.space.equalising import equalisation_choices, equalised
from penstock.dse.space.tiling import Choices, Conditions, Params, TilingSpace, Value

WIDEST_PORT = 512


MAPPING, AS_WRITTEN = "mapping", "as-written"


class TaskSpace(TilingSpace):
    """How instances stand on the chip has one value: each where the program puts it. How FIFOs are sized is open."""

    @cached_property
    def choices(self) -> Choices:
        return {MAPPING: (AS_WRITTEN,), **equalisation_choices(self.options)}

    @cached_property
    def conditions(self) -> Conditions:
        return {}

    @cached_property
    def port_bits(self) -> int:
        """As wide as a program may make its words."""
        return WIDEST_PORT

    @cached_property
    def weights(self) -> WeightStore:
        return "rom"

    def default_params(self) -> dict[str, Value]:
        return {name: values[0] for name, values in self.choices.items()}

    def first_settings(self) -> tuple[dict[str, Value], ...]:
        return (self.default_params(),)

    def paced_settings(self) -> tuple[dict[str, Value], ...]:
        return ()

    def fitted_setting(self) -> dict[str, Value]:
        return {}

    @cached_property
    def _unsaid(self) -> dict[str, Value]:
        return self.default_params()

    def design(self, params: Params) -> Design:
        settings = self.settings(params)
        design = Design(self.platform.name, self.clock_mhz, {}, self.quantize, port_bits=self.port_bits)
        return equalised(design, settings, self.options)
