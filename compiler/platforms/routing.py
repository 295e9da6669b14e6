"""What can still be routed on a platform: a table with its sources, and the platform's own links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from penstock.compiler.platforms.platform import Platform
from penstock.compiler.platforms.toml_fields import parse_toml

_TABLE = files("penstock.compiler.platforms").joinpath("routing.toml")


@dataclass(frozen=True)
class Routing:
    """The largest that one pipeline and one token may be."""

    pipeline_lut: int
    pipeline_ff: int
    pipeline_dsp: int
    token_bits: int


def routing_of(platform: Platform) -> Routing | None:
    """None where nothing is known, and for a core without a board: its figures are those of synthesis alone."""
    known = _by_family().get(platform.family.name)
    if known is None or platform.has_array_arguments:
        return None
    wires = min((link.wires for link in platform.links), default=known.token_bits)
    return Routing(known.pipeline_lut, known.pipeline_ff, known.pipeline_dsp, wires)


@cache
def _by_family() -> dict[str, Routing]:
    top = parse_toml(_TABLE.read_text(), "routing.toml", "bad-platform-file")
    found: dict[str, Routing] = {}
    for name in top.names():
        fields = top.table(name)
        found[name] = Routing(
            pipeline_lut=fields.count("pipeline_lut", at_least=1),
            pipeline_ff=fields.count("pipeline_ff", at_least=1),
            pipeline_dsp=fields.count("pipeline_dsp", at_least=1),
            token_bits=fields.count("token_bits", at_least=1),
        )
        fields.finish()
    return found
