"""The host program for AMD devices: native C++ for XRT, of which one header is made from the design."""

from penstock.compiler.package.xrt.files import runs_on_xrt, xrt_files

__all__ = ["runs_on_xrt", "xrt_files"]
