"""The shell of a board: what surrounds a core on an FPGA so that a host can reach it over a serial line."""

from penstock.compiler.backend.rtl.shell.identity import HostPort
from penstock.compiler.backend.rtl.shell.wrap import BoardDesign, UartLink, wrap_core

__all__ = ["BoardDesign", "HostPort", "UartLink", "wrap_core"]
