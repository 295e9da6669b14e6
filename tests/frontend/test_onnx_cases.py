"""The ONNX project's own cases of single nodes: the right values, or a refusal in one line."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.onnx_graph import load_onnx
from penstock.compiler.reference import OnnxReference

HALVES = 1e-2
"""By so much may what is computed in float32 differ from what is computed in halves."""
LEAST_RIGHT = 1_400
"""Of all cases, those with constants instead of further inputs too; the others are refused."""


def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases divide by zero on purpose
        from onnx.backend.test.case.node import collect_testcases

        found = [case for case in collect_testcases(None) if case.model is not None and case.data_sets]
    return sorted(found, key=lambda case: case.name)


def forms(case: Any) -> Iterator[tuple[onnx.ModelProto, Sequence[Any]]]:
    """As it is, and as exporters write it: all but the first input stored in the file."""
    inputs = list(case.data_sets[0][0])
    yield case.model, inputs
    if len(inputs) > 1 and all(isinstance(x, np.ndarray | np.generic) for x in inputs):
        stored = onnx.ModelProto()
        stored.CopyFrom(case.model)
        for entry, value in list(zip(stored.graph.input, inputs, strict=False))[1:]:
            stored.graph.initializer.append(numpy_helper.from_array(np.asarray(value), entry.name))
        yield stored, inputs[:1]


def tried(case: Any, model: onnx.ModelProto, inputs: Sequence[Any], path: Path) -> str:
    path.write_bytes(model.SerializeToString())
    try:
        loaded = load_onnx(OnnxReference(path))
    except PenstockError as error:
        return "refused" if "\n" not in error.one_line() else f"refused in more than a line: {case.name}"
    given, expected = ([_array(x) for x in some] for some in (inputs, case.data_sets[0][1]))
    answer = loaded.module(*(torch.as_tensor(x.astype(np.float32) if is_real(x) else x) for x in given))
    of_halves = any(is_real(x) and x.dtype.itemsize < 4 for x in (*given, *expected))
    rtol, atol = (HALVES, HALVES) if of_halves else (max(case.rtol, 1e-3), 1e-5)
    for ours, theirs in zip(answer if isinstance(answer, tuple) else (answer,), expected, strict=False):
        assert tuple(ours.shape) == np.shape(theirs), case.name
        wanted = theirs.astype(np.float64) if is_real(theirs) else theirs
        np.testing.assert_allclose(ours.numpy(), wanted, rtol=rtol, atol=atol, err_msg=case.name)
    return "right"


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.array(value)


def is_real(values: Any) -> bool:
    """Numbers that become float32 here, bfloat16 too, which NumPy knows by its name alone."""
    return values.dtype.kind == "f" or values.dtype.name == "bfloat16"


@pytest.mark.slow
def test_all_of_the_cases(tmp_path: Path) -> None:
    found = Counter(tried(case, *form, tmp_path / "m.onnx") for case in cases() for form in forms(case))
    assert set(found) == {"right", "refused"}
    assert found["right"] >= LEAST_RIGHT
