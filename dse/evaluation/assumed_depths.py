"""FIFO depths of a design that names none: by modelled times, as deep as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from penstock.compiler.design import Design
from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import (
    CONSERVATIVE,
    depths_where_paths_meet,
    equalised_depths,
    lean_depths,
    roomy_or_slower,
    safe_depths,
)
from penstock.profiling.model import ChannelFigures

_WHERE_PATHS_MEET = 1 / 8
"""Of the bits of all memories: so much room is left to whole tensors in FIFOs before anything is simulated."""

Slower = Callable[[int], Sequence[ChannelFigures]]
AreaWith = Callable[[Mapping[str, int]], Resources]


def assumed_depths(
    design: Design,
    channels: Sequence[ChannelFigures],
    goal: Goal,
    may_use: Resources,
    slower: Slower,
    area: AreaWith,
    *,
    grouped: bool,
) -> tuple[dict[str, int], bool]:
    """The depths, and whether they may stop for ever and are to be simulated before anybody relies on them.

    `slower` says when tokens of one input pass where tasks are slowed by an equalisation, `area` what a design takes
    with some depths: both are asked only where they matter. Kernels may stand in groups that run one after the other.
    """
    depths, room = safe_depths(channels, design.prefetch_bits), _WHERE_PATHS_MEET * may_use.memory_bits
    if design.equalisation:
        return equalised_depths(channels, slower(design.equalisation), depths)
    if goal.weighs_frames and not grouped:
        return roomy_or_slower(channels, partial(slower, CONSERVATIVE), depths, room)
    held = depths_where_paths_meet(channels, depths, room)
    if held != depths and area(held).memory_bits > may_use.memory_bits:
        held |= lean_depths(channels, held, equalised_depths(channels, slower(CONSERVATIVE), depths)[0])
    return held, held != depths
