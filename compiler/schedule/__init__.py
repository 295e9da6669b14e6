"""Time and area of nests: operator libraries as data, initiation intervals with reasons, token patterns."""

from penstock.compiler.schedule.bindings import check_bindings, implementations
from penstock.compiler.schedule.library import Operator, OperatorLibrary, library_names, load_library
from penstock.compiler.schedule.memory import (
    MemoryShape,
    MemoryUse,
    bram18_count,
    build_memory,
    fifo_area,
    fifo_choices,
    memory_choices,
    uram_count,
)
from penstock.compiler.schedule.nest import schedule_facts, schedule_nest
from penstock.compiler.schedule.pattern import PatternLevel, TokenPattern
from penstock.compiler.schedule.records import Bound, NestSchedule, OpStage, PortSchedule

__all__ = [
    "Bound",
    "PatternLevel",
    "MemoryShape",
    "MemoryUse",
    "NestSchedule",
    "OpStage",
    "Operator",
    "OperatorLibrary",
    "PortSchedule",
    "TokenPattern",
    "bram18_count",
    "build_memory",
    "check_bindings",
    "fifo_area",
    "fifo_choices",
    "implementations",
    "library_names",
    "load_library",
    "memory_choices",
    "schedule_facts",
    "schedule_nest",
    "uram_count",
]
