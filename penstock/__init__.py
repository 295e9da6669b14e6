"""Penstock: from a PyTorch model to a streaming accelerator on an FPGA.

The one import name. The folders lie at the top of the repository, where people look for them; here they are linked
under the name that they are imported by (`penstock.compiler`, `penstock.dse`, ...), and a wheel holds them so.
"""

from pathlib import Path

IMPORT_ROOT = Path(__file__).resolve().parent.parent
"""What a process must have on its path to import this package: a checkout's root, or the site-packages of a wheel."""
