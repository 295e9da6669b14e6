"""Arithmetic cores in SystemVerilog, and which operation they are for."""

from __future__ import annotations

from compiler.backend.rtl.primitives.registry import Primitive, find_primitive, source

__all__ = ["Primitive", "find_primitive", "source"]
