"""torch.export tells each of some 500 composite operations what to do at 20 dispatch keys, for every model anew.

Two thirds of that are beside the point: the list of these operations is asked for once a namespace, and each
registration evaluates its own annotations. Here the list is asked for once, and a registration is an entry in a table.
What is registered is the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from functools import cache
from typing import Any

# of torch's insides, which have no public names
import torch._export.utils as listing
import torch._ops as operators
from torch._C import DispatchKey

_LISTED, _REGISTERS = "_materialize_cpp_cia_ops", "py_impl"


@contextlib.contextmanager
def quick_registering() -> Generator[None]:
    """Operations that are registered in here by libraries are not seen: a model is traced, nothing is loaded."""
    listed, registers = getattr(listing, _LISTED), getattr(operators.OperatorBase, _REGISTERS)

    def register(operator: Any, key: object) -> Callable[[Any], Any]:
        kernels: dict[object, Any] = operator.py_kernels
        if not isinstance(key, DispatchKey) or key == DispatchKey.Python or key in kernels:
            return registers(operator, key)

        def put(kernel: Any) -> Any:
            kernels[key] = kernel
            operator._dispatch_cache.clear()
            return kernel

        return put

    setattr(listing, _LISTED, cache(listed))
    setattr(operators.OperatorBase, _REGISTERS, register)
    try:
        yield
    finally:
        setattr(listing, _LISTED, listed)
        setattr(operators.OperatorBase, _REGISTERS, registers)
