"""The host runtime of a Penstock package: quantise, call the accelerator, dequantise.

It is copied into every package and needs Python 3.9, numpy and, for emulation, a C++ compiler:

    import penstock_runtime
    accelerator = penstock_runtime.load("path/to/package")
    answer = accelerator.run(x)
"""

from .accelerator import Accelerator, load
from .backends import BACKENDS, Backend, Emulation
from .errors import PackageError
from .generate import Generated
from .package import Evaluation, Package, Samples, open_package
from .ports import Port

__all__ = [
    "BACKENDS",
    "Accelerator",
    "Backend",
    "Emulation",
    "Evaluation",
    "Generated",
    "Package",
    "PackageError",
    "Port",
    "Samples",
    "load",
    "open_package",
]
