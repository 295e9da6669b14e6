"""How every buffer and FIFO is built: registers, LUTs, block RAM or UltraRAM, within what each die has."""

from penstock.dse.memory.allocate import allocate
from penstock.dse.memory.items import StoredItem, stored_items
from penstock.dse.memory.picture import memory_svg, memory_table
from penstock.dse.memory.result import Allocation
from penstock.dse.memory.whole import allocate_whole, memory_luts

__all__ = [
    "Allocation", "StoredItem", "allocate", "allocate_whole", "memory_luts", "memory_svg", "memory_table",
    "stored_items",
]  # fmt: skip
