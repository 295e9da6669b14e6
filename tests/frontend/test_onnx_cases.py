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
    answer = loaded.module(*(torch.as_tensor(np.array(x)) for x in inputs))
    for ours, theirs in zip(answer if isinstance(answer, tuple) else (answer,), case.data_sets[0][1], strict=False):
        assert tuple(ours.shape) == np.shape(theirs), case.name
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=max(case.rtol, 1e-3), atol=1e-5, err_msg=case.name)
    return "right"


@pytest.mark.slow
def test_all_of_the_cases(tmp_path: Path) -> None:
    found = Counter(tried(case, *form, tmp_path / "m.onnx") for case in cases() for form in forms(case))
    assert set(found) == {"right", "refused"}
    assert found["right"] >= LEAST_RIGHT
