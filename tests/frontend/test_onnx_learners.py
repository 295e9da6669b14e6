"""ONNX' operators for learners, as converters of scikit-learn write them: what the ONNX project's evaluator answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from tests.frontend.onnx_files import graph, save
from tests.frontend.test_onnx import same_as_reference

ROW = [0.5, -1.0, 2.0, 0.25]
MATRIX = np.random.default_rng(2).uniform(-1, 1, 12).astype(np.float32).tolist()


def learner(kind: str, results: str = "y", **attributes: Any) -> onnx.ModelProto:
    """One node on `x`, whose last result is numbers, and the one before, if there is one, labels."""
    model = graph([helper.make_node("Relu", ["x"], ["y"])], {"x": (3, 4)}, ["y"])
    del model.graph.node[:], model.graph.output[:]
    names = results.split()
    model.graph.node.append(helper.make_node(kind, ["x"], names, "node", domain="ai.onnx.ml", **attributes))
    for name in names:
        labels = name == "label"
        kind_of = TensorProto.INT64 if labels else TensorProto.FLOAT
        model.graph.output.append(helper.make_tensor_value_info(name, kind_of, [3] if labels else [3, None]))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    return model


LEARNERS = {
    "scaler": learner("Scaler", offset=ROW, scale=[2.0, 0.5, 1.0, 4.0]),
    "scaler of one number": learner("Scaler", offset=[0.5], scale=[2.0]),
    "normaliser, largest": learner("Normalizer", norm="MAX"),
    "normaliser, sum": learner("Normalizer", norm="L1"),
    "normaliser, length": learner("Normalizer", norm="L2"),
    "regression": learner("LinearRegressor", coefficients=ROW, intercepts=[0.75], targets=1),
    "regression of three": learner("LinearRegressor", coefficients=MATRIX, intercepts=[0.5, 0.0, -1.0], targets=3),
    "classes": learner("LinearClassifier", "label y", coefficients=MATRIX, intercepts=[0.5, 0.0, -1.0],
                       classlabels_ints=[0, 1, 2], post_transform="SOFTMAX", multi_class=1),
    "classes by numbers of their own": learner(
        "LinearClassifier", "label y", coefficients=MATRIX, intercepts=[0.5, 0.0, -1.0], classlabels_ints=[7, 3, 5],
        post_transform="LOGISTIC"),
    "support vectors": learner("SVMRegressor", coefficients=[0.5, -1.0, 2.0], support_vectors=MATRIX, n_supports=3,
                               rho=[0.25], kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0]),
    "support vectors, polynomial": learner(
        "SVMRegressor", coefficients=[0.5, -1.0, 2.0], support_vectors=MATRIX, n_supports=3, rho=[0.25],
        kernel_type="POLY", kernel_params=[0.5, 1.0, 3.0]),
    "above a threshold": learner("Binarizer", threshold=0.25),
}  # fmt: skip


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_mean_what_onnx_says(name: str, tmp_path: Path) -> None:
    same_as_reference(LEARNERS[name], tmp_path)


def test_labels_are_found_on_the_host_and_maps_stay_rows(tmp_path: Path) -> None:
    model = LEARNERS["classes"]
    zip_map = helper.make_node("ZipMap", ["y"], ["map"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])
    made = onnx.ModelProto.FromString(model.SerializeToString())
    made.graph.node.append(zip_map)
    made.graph.output[1].name = "map"
    program = import_model(str(save(made, tmp_path / "net.onnx")))
    assert program.host is not None
    assert [output.shape for output in program.signature.outputs] == [(3, 3)]


def test_classes_that_are_text_are_refused(tmp_path: Path) -> None:
    model = learner("LinearClassifier", "label y", coefficients=MATRIX, intercepts=[0.5, 0.0, -1.0],
                    classlabels_strings=["a", "b", "c"])  # fmt: skip
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(PenstockError, match="LinearClassifier is not supported with classes that are text"):
        import_model(str(save(model, tmp_path / "net.onnx")))
