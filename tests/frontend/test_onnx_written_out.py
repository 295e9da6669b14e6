"""Branches, loops and functions in ONNX files: as the ONNX project's evaluator runs them, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.onnx_written_out import MOST_NODES
from tests.frontend.onnx_files import graph, save
from tests.frontend.test_onnx import same_as_reference

DRAW = np.random.default_rng(5)
SQUARE, NARROW = (DRAW.uniform(-1, 1, shape).astype(np.float32) for shape in ((4, 4), (4, 3)))


def body(nodes: list[onnx.NodeProto], inputs: dict[str, Any], outputs: dict[str, Any], **inner: Any) -> Any:
    """What stands inside. A name with `?` is a condition, one with `#` a number of turns."""

    def entry(name: str, shape: Any) -> onnx.ValueInfoProto:
        kind = TensorProto.BOOL if "?" in name else TensorProto.INT64 if "#" in name else TensorProto.FLOAT
        return helper.make_tensor_value_info(name, kind, shape)

    return helper.make_graph(
        nodes, "inside", [entry(*x) for x in inputs.items()], [entry(*x) for x in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in inner.items()],
    )  # fmt: skip


def branch(weight: str) -> Any:
    return body([node("MatMul", ["x", weight], ["made"])], {}, {"made": [2, 3]})


def step(*more: onnx.NodeProto, goes_on: str = "goes_on?") -> Any:
    """One turn: h = tanh(h w); the h of each turn is kept too."""
    nodes = [
        node("MatMul", ["h", "w"], ["product"]), node("Tanh", ["product"], ["next"]),
        node("Identity", ["next"], ["kept"]), *more, node("Identity", [goes_on], ["still?"]),
    ]  # fmt: skip
    inputs = {"turn#": [], "goes_on?": [], "h": [2, 4]}
    return body(nodes, inputs, {"still?": [], "next": [2, 4], "kept": [2, 4]})


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_that_a_constant_chooses(condition: bool, tmp_path: Path) -> None:
    made = node("If", ["c"], ["z"], "choose", then_branch=branch("a"), else_branch=branch("b"))
    constants = {"c": np.asarray(condition), "a": NARROW, "b": -NARROW * 2}
    same_as_reference(graph([made, node("Relu", ["z"], ["y"])], {"x": (2, 4)}, ["y"], constants), tmp_path)


def test_the_branch_that_a_shape_chooses(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "zero"], ["rows"]),
        node("Equal", ["rows", "two"], ["c"]),
        node("If", ["c"], ["y"], "choose", then_branch=branch("a"), else_branch=branch("b")),
    ]  # fmt: skip
    constants = {"zero": np.int64(0), "two": np.int64(2), "a": NARROW, "b": -NARROW * 2}
    same_as_reference(graph(nodes, {"x": (2, 4)}, ["y"], constants), tmp_path)


def test_a_loop_of_known_turns_with_what_each_turn_leaves(tmp_path: Path) -> None:
    made = node("Loop", ["turns", "yes", "x"], ["last", "rows"], "loop", body=step())
    nodes = [made, node("Reshape", ["rows", "flat"], ["y"]), node("MatMul", ["last", "n"], ["z"])]
    constants = {"turns": np.int64(3), "yes": np.asarray(True), "flat": np.asarray([6, 4]), "w": SQUARE, "n": NARROW}
    same_as_reference(graph(nodes, {"x": (2, 4)}, ["y", "z"], constants), tmp_path)
    left = graph(nodes[:1], {"x": (2, 4)}, ["rows"], constants)  # the evaluator joins them along another axis
    assert import_model(str(save(left, tmp_path / "left.onnx"))).signature.outputs[0].shape == (3, 2, 4)


def test_a_loop_that_its_own_turns_end(tmp_path: Path) -> None:
    more = node("Less", ["turn#", "one"], ["again?"])
    made = node("Loop", ["many", "yes", "x"], ["last", "rows"], "loop", body=step(more, goes_on="again?"))
    nodes = [made, node("Reshape", ["rows", "flat"], ["y"]), node("Relu", ["last"], ["z"])]
    constants = {"many": np.int64(99), "yes": np.asarray(True), "one": np.int64(1), "flat": np.asarray([-1, 4])}
    same_as_reference(graph(nodes, {"x": (2, 4)}, ["y", "z"], {**constants, "w": SQUARE}), tmp_path)
    assert import_model(str(tmp_path / "net.onnx")).signature.outputs[0].shape == (4, 4)


def test_loops_in_branches_in_loops_with_weights_of_their_own(tmp_path: Path) -> None:
    inner = node("Loop", ["two", "yes", "h"], ["g", "rows"], "inner", body=step())
    yes = body([inner, node("Add", ["g", "bias"], ["made"])], {}, {"made": [2, 4]}, bias=SQUARE[:1])
    no = body([node("Neg", ["h"], ["made"])], {}, {"made": [2, 4]})
    nodes = [
        node("Equal", ["turn#", "one"], ["second?"]),
        node("If", ["second?"], ["out"], "choose", then_branch=yes, else_branch=no),
        node("Identity", ["on?"], ["still?"]),
    ]  # fmt: skip
    outer = body(nodes, {"turn#": [], "on?": [], "h": [2, 4]}, {"still?": [], "out": [2, 4]})
    made = node("Loop", ["two", "yes", "x"], ["y"], "outer", body=outer)
    constants = {"one": np.int64(1), "two": np.int64(2), "yes": np.asarray(True), "w": SQUARE}
    same_as_reference(graph([made], {"x": (2, 4)}, ["y"], constants), tmp_path)


def test_a_scan_over_the_steps_of_a_series(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["h", "w"], ["g"]), node("Add", ["g", "now"], ["next"]), node("Tanh", ["next"], ["kept"])]
    inside = body(nodes, {"h": [2, 4], "now": [2, 4]}, {"next": [2, 4], "kept": [2, 4]})
    made = node("Scan", ["start", "x"], ["last", "y"], "scan", body=inside, num_scan_inputs=1)
    constants = {"start": SQUARE[:2], "w": SQUARE}
    same_as_reference(graph([made], {"x": (3, 2, 4)}, ["y", "last"], constants), tmp_path)


def test_a_scan_backwards_along_other_axes(tmp_path: Path) -> None:
    """The evaluator knows no such scan: the same steps are written with numpy."""
    nodes = [node("Add", ["h", "now"], ["next"]), node("Identity", ["next"], ["kept"])]
    inside = body(nodes, {"h": [2], "now": [2]}, {"next": [2], "kept": [2]})
    made = node("Scan", ["start", "x"], ["last", "y"], "scan", body=inside, num_scan_inputs=1, scan_input_axes=[1],
                scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1])  # fmt: skip
    path = save(graph([made], {"x": (2, 3)}, ["y"], {"start": SQUARE[0, :2]}), tmp_path / "net.onnx")
    program = import_model(str(path))
    assert program.samples is not None
    (x,), (y,) = program.samples.inputs, program.samples.outputs
    np.testing.assert_allclose(y, np.cumsum(x[:, ::-1], 1)[:, ::-1] + SQUARE[0, :2, None], rtol=1e-5, atol=1e-6)


def scaled() -> onnx.FunctionProto:
    """A product times a number that is an attribute of the call."""
    product = node("Gemm", ["a", "b", "zero"], ["y"])
    product.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    nodes = [node("Constant", [], ["zero"], value_float=0.0), product]
    return helper.make_function("own", "Scaled", ["a", "b"], ["y"], nodes, [helper.make_opsetid("", 18)], ["slope"])


def with_functions(model: onnx.ModelProto, *functions: onnx.FunctionProto) -> onnx.ModelProto:
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def test_functions_of_the_file_with_attributes_of_each_call(tmp_path: Path) -> None:
    slopes = (("c", "two", 0.5), ("two", "y", 2.0))
    calls = [node("Scaled", [a, "b"], [y], domain="own", slope=slope) for a, y, slope in slopes]
    twice = helper.make_function(
        "own", "Twice", ["b", "c"], ["y"], calls, [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    )
    nodes = [
        node("MatMul", ["x", "w"], ["two"]),
        node("Twice", ["w", "two"], ["a"], domain="own"),
        node("Scaled", ["a", "w"], ["y"], domain="own", slope=0.25),
    ]
    model = graph([node("Relu", ["x"], ["y"])], {"x": (2, 4)}, ["y"], {"w": SQUARE})
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    same_as_reference(with_functions(model, scaled(), twice), tmp_path)


def refused(model: onnx.ModelProto, path: Path) -> str:
    with pytest.raises(PenstockError) as caught:
        import_model(str(save(model, path)))
    assert "\n" not in caught.value.one_line()
    return caught.value.one_line()


def test_what_depends_on_the_inputs_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["c"]),
        node("If", ["c"], ["y"], "choose", then_branch=branch("a"), else_branch=branch("b")),
    ]  # fmt: skip
    constants = {"zero": np.float32(0), "a": NARROW, "b": NARROW}
    said = refused(graph(nodes, {"x": (2, 4)}, ["y"], constants), path)
    assert "node 'choose' of net: the condition of If ('c') depends on the model's inputs" in said
    nodes = [node("ReduceMax", ["x"], ["most"], keepdims=0), node("Cast", ["most"], ["turns"], to=TensorProto.INT64),
             node("Loop", ["turns", "", "x"], ["y", "all"], "loop", body=step())]  # fmt: skip
    said = refused(graph(nodes, {"x": (2, 4)}, ["y"], {"w": SQUARE}), path)
    assert "the number of turns of Loop ('turns') depends on the model's inputs" in said


def test_loops_and_functions_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    made = node("Loop", ["turns", "", "x"], ["y", "all"], "loop", body=step())
    said = refused(graph([made], {"x": (2, 4)}, ["y"], {"turns": np.int64(10**9), "w": SQUARE}), path)
    assert f"more than {MOST_NODES:,} nodes" in said
    again = helper.make_function("own", "Scaled", ["a"], ["y"], [node("Scaled", ["a", "a"], ["y"], domain="own")],
                                 [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)])  # fmt: skip
    model = graph([node("Relu", ["x"], ["y"])], {"x": (2, 4)}, ["y"])
    model.graph.node[0].op_type, model.graph.node[0].domain = "Scaled", "own"
    assert "Scaled" in refused(with_functions(model, again), path)
