"""What torch.export registers for a model is the same in a third of the time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.export.exported_program as exported
from torch import nn
from torch._ops import OperatorBase

from penstock.compiler.frontend.decompositions import decomposition_table
from penstock.compiler.frontend.quick_registering import quick_registering
from tests.frontend.models import import_module, make, seeded

Kernels = dict[Any, dict[Any, Any]]


def tables() -> Kernels:
    """All that composite operations have been told, by operation and key."""
    operations, _ = exported._split_decomp_table_to_cia_and_python_decomp(decomposition_table())
    return {operation: dict(operation.py_kernels) for operation in operations}


def names(found: Kernels) -> Kernels:
    """Kernels are closures, made anew each time."""
    return {
        operation: {key: getattr(kernel, "__qualname__", type(kernel)) for key, kernel in kernels.items()}
        for operation, kernels in found.items()
    }


def registered() -> Kernels:
    operations, _ = exported._split_decomp_table_to_cia_and_python_decomp(decomposition_table())
    with exported._override_composite_implicit_decomp(operations):
        return {operation: dict(operation.py_kernels) for operation in operations}


def test_the_same_is_registered_and_nothing_stays() -> None:
    before, usual = tables(), registered()
    with quick_registering():
        quick = registered()
    assert names(quick) == names(usual)
    assert any(len(quick[operation]) > len(before[operation]) for operation in quick)
    assert tables() == before


def test_what_is_registered_already_is_refused_as_ever() -> None:
    def twice() -> str:
        register = torch.ops.aten.linear.default.py_impl(torch._C.DispatchKey.XLA)
        register(print)
        try:
            with pytest.raises(RuntimeError) as caught:
                torch.ops.aten.linear.default.py_impl(torch._C.DispatchKey.XLA)(print)
        finally:
            del torch.ops.aten.linear.default.py_kernels[torch._C.DispatchKey.XLA]
        return str(caught.value)

    usual = twice()
    with quick_registering():
        assert twice() == usual


def test_operations_are_listed_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    listed, registers = torch._C._dispatch_get_registrations_for_dispatch_key, OperatorBase.py_impl
    monkeypatch.setattr(
        torch._C, "_dispatch_get_registrations_for_dispatch_key", lambda key: [asked.append(key), listed(key)][1]
    )
    import_module(make(lambda: nn.Linear(4, 3)), seeded((2, 4)))
    assert asked == ["CompositeImplicitAutograd"]
    assert OperatorBase.py_impl is registers
