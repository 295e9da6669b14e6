"""The space of a task program: how its instances share elements, where its author leaves that to a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.analysis.default_design import WeightStore
from penstock.compiler.design import Design
from penstock.dse.space.equalising import equalisation_choices, equalised
from penstock.dse.space.tiling import Choices, Conditions, Params, TilingSpace, Value

WIDEST_PORT = 512


MAPPING, AS_WRITTEN = "mapping", "as-written"
_BETWEEN = "; "


def written(steps: Sequence[object]) -> str:
    """A mapping as the value of the parameter."""
    return _BETWEEN.join(map(str, steps)) or AS_WRITTEN


@dataclass(frozen=True)
class TaskSpace(TilingSpace):
    """How instances stand on the chip: as the program says, or as it fits the limits that it names; FIFOs' sizing."""

    mappings: tuple[str, ...] = (AS_WRITTEN,)

    @cached_property
    def choices(self) -> Choices:
        return {MAPPING: self.mappings, **equalisation_choices(self.options)}

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
        return tuple({**self.default_params(), MAPPING: one} for one in self.mappings)

    def paced_settings(self) -> tuple[dict[str, Value], ...]:
        return ()

    def fitted_setting(self) -> dict[str, Value]:
        return {}

    @cached_property
    def _unsaid(self) -> dict[str, Value]:
        return self.default_params()

    def design(self, params: Params) -> Design:
        settings = self.settings(params)
        chosen = str(settings[MAPPING])
        steps = () if chosen == AS_WRITTEN else tuple(chosen.split(_BETWEEN))
        design = Design(
            self.platform.name, self.clock_mhz, {}, self.quantize, port_bits=self.port_bits, mapping=steps
        )  # fmt: skip
        return equalised(design, settings, self.options)
