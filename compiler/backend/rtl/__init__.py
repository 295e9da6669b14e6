"""Emits SystemVerilog for the open route."""

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort, RtlPortKind

__all__ = ["RtlPortKind", "RtlDesign", "RtlPort"]
