"""Emits HLS C++ for Vitis and for the bundled C simulation headers."""

from penstock.compiler.backend.hls.emit import emit_hls

__all__ = ["emit_hls"]
