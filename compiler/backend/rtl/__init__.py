"""Emits SystemVerilog for the open route."""

from penstock.compiler.backend.rtl.design import PortKind, RtlDesign, RtlPort

__all__ = ["PortKind", "RtlDesign", "RtlPort"]
