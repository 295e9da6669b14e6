"""Arithmetic cores in SystemVerilog, and which operation they are for."""

from __future__ import annotations

from penstock.compiler.backend.rtl.primitives.registry import Primitive, find_primitive, source
from penstock.compiler.backend.rtl.primitives.rom import Rom, is_tabulated, rom_of, tabulate

__all__ = ["Primitive", "Rom", "find_primitive", "is_tabulated", "rom_of", "source", "tabulate"]
