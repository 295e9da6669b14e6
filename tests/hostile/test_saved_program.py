"""A forged program is refused: what a hostile model may leave in place of what the importer writes."""

from __future__ import annotations

import io
import json
import pickle
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from penstock.compiler import host_check
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime import host
from penstock.compiler.runtime.penstock_runtime.errors import PackageError
from penstock.compiler.runtime.penstock_runtime.host import find_operation
from penstock.compiler.saved_program import load_checked
from penstock.services.jobs.host_work import check_host_work

MOST = 1 << 20
GRAPH = """
"builtin.module"() ({
  "func.func"() <{sym_name = "main", function_type = (tensor<2xf32>) -> tensor<2xf32>}> ({
  ^bb0(%x: tensor<2xf32>):
    "func.return"(%x) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""
PORT = {"name": "x", "shape": [2], "dtype": "float32", "quant": None}
SIGNATURE: dict[str, Any] = {"name": "m", "params": [], "inputs": [PORT], "outputs": [PORT], "reference": "PyTorch"}


class Evil:
    """Would make a file if anything unpickled it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def program(folder: Path) -> Path:
    (folder / "graph.mlir").write_text(GRAPH)
    (folder / "signature.json").write_text(json.dumps(SIGNATURE))
    np.savez(folder / "params.npz")
    return folder


def array(header_shape: tuple[int, ...], values: Any) -> bytes:
    """The bytes of an array whose header says another shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": header_shape})
    return stream.getvalue() + np.asarray(values, np.float32).tobytes()


def archive(path: Path, content: bytes, name: str = "w.npy", method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(name, content)


def pickled(folder: Path) -> None:
    np.savez(folder / "params.npz", w=np.array([Evil(folder / "executed")], dtype=object))


def bare_pickle(folder: Path) -> None:
    (folder / "params.npz").write_bytes(pickle.dumps(Evil(folder / "executed")))


def pickle_in_archive(folder: Path) -> None:
    archive(folder / "params.npz", pickle.dumps(Evil(folder / "executed")))


def zip_bomb(folder: Path) -> None:
    archive(folder / "params.npz", bytes(8 << 20), method=zipfile.ZIP_DEFLATED)


def packed_otherwise(folder: Path) -> None:
    """Its unpacker gives out all that a few bytes stand for, however little is asked for."""
    archive(folder / "params.npz", array((100_000,), np.zeros(100_000)), method=zipfile.ZIP_BZIP2)


def words_in_text(folder: Path) -> None:
    (folder / "text").mkdir()
    np.savez(folder / "text" / "arrays.npz", name=np.array("\x1b]0;evil\x07"), calibration=np.zeros(3, np.int64))


def a_state_of_no_port(folder: Path) -> None:
    state = {"name": "s", "input": 0, "output": 0, "port": "elsewhere", "result": 0}
    (folder / "states").mkdir()
    (folder / "states" / "states.json").write_text(json.dumps([state]))
    np.savez(folder / "states" / "arrays.npz", value_0=np.zeros(2, np.float32))


def many_arrays(folder: Path) -> None:
    for name in ("params", "samples", "calibration"):
        archive(folder / f"{name}.npz", array((100_000,), np.zeros(100_000)), method=zipfile.ZIP_DEFLATED)


def lying_header(folder: Path) -> None:
    archive(folder / "params.npz", array((1 << 40,), [1.0]))


def long_header(folder: Path) -> None:
    header = b"\x93NUMPY\x02\x00" + (1 << 19).to_bytes(4, "little") + b"(" * (1 << 19)
    archive(folder / "params.npz", header, method=zipfile.ZIP_DEFLATED)


def header_of_python(folder: Path) -> None:
    """What numpy hands to Python's tokenizer."""
    archive(folder / "params.npz", b"\x93NUMPY\x01\x00" + (2000).to_bytes(2, "little") + b"(" * 2000)


def encrypted(folder: Path) -> None:
    archive(folder / "params.npz", array((1,), [1.0]))
    content = bytearray((folder / "params.npz").read_bytes())
    content[content.find(b"PK\x03\x04") + 6] |= 1
    content[content.find(b"PK\x01\x02") + 8] |= 1
    (folder / "params.npz").write_bytes(content)


def named(**changes: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "signature.json").write_text(json.dumps(SIGNATURE | changes))

    return write


def graph(text: str) -> Callable[[Path], None]:
    return lambda folder: void((folder / "graph.mlir").write_text(text))


def void(_: object) -> None:
    return None


def attribute(text: str) -> Callable[[Path], None]:
    return graph(GRAPH.replace('sym_name = "main"', f'sym_name = "main", layer = "{text}"'))


ALIASES = '#a0 = ["x", "x"]\n' + "".join(f"#a{i} = [#a{i - 1}, #a{i - 1}]\n" for i in range(1, 40))
SPLAT = """
    %c = "arith.constant"() <{value = dense<1.0> // a gap
      : tensor<4294967296xf32>}> : () -> tensor<4294967296xf32>
    "func.return"
"""

FORGED: dict[str, Callable[[Path], None]] = {
    "pickled objects in an array": pickled,
    "a pickle for an archive": bare_pickle,
    "a pickle in an archive": pickle_in_archive,
    "an archive that unpacks to too much": zip_bomb,
    "three archives too large together": many_arrays,
    "an archive that cannot be read in parts": packed_otherwise,
    "words for a terminal in the name of a text": words_in_text,
    "a state that is no port": a_state_of_no_port,
    "ports of other sizes": named(inputs=[{**PORT, "shape": [3]}]),
    "ports of negative sizes": named(inputs=[{**PORT, "shape": [-1, -2]}]),
    "text that doubles with every line": graph(ALIASES + GRAPH.replace('"main"', '"main", layer = #a39')),
    "a constant that is said once and held often": graph(GRAPH.replace('"func.return"', SPLAT)),
    "tensors of a terabyte": graph(GRAPH.replace("tensor<2xf32>", "tensor<1000000x1000000xf32>")),
    "a long document": lambda folder: void((folder / "signature.json").write_text("[" + "[]," * (3 << 20) + "[]]")),
    "a header of a petabyte": lying_header,
    "a header without an end": long_header,
    "a header that is half a tuple": header_of_python,
    "an encrypted archive": encrypted,
    "no archive": lambda folder: void((folder / "params.npz").write_bytes(b"PK\x03\x04 no")),
    "words for a terminal in the name": named(name="\x1b]0;evil\x07"),
    "text that runs backwards in a port": named(inputs=[{**PORT, "name": "x\u202ey"}]),
    "a line break into generated code": named(outputs=[{**PORT, "name": 'x\nsystem("evil")'}]),
    "a line break into a comment": attribute('a\\0Asystem(\\22evil\\22);'),
    "escapes in the graph": attribute("\\1B[2J"),
    "a name of a megabyte": named(name="x" * (1 << 20)),
    "a document nested too deeply": lambda folder: void(
        (folder / "signature.json").write_text("[" * 100_000 + "]" * 100_000)
    ),
    "a document of another form": named(inputs="all of them"),
    "no document": lambda folder: void((folder / "signature.json").write_bytes(b"\xff\xfe")),
    "a graph nested too deeply": graph('"builtin.module"() ({' * 20_000),
    "a graph of unknown operations": graph(GRAPH.replace("func.return", "os.system")),
    "a graph that does not fit": graph(GRAPH.replace("(tensor<2xf32>) -> ()", "(tensor<3xf32>) -> ()")),
    "nothing": lambda folder: (folder / "graph.mlir").unlink(),
}  # fmt: skip


def test_an_honest_one_is_taken(tmp_path: Path) -> None:
    assert isinstance(load_checked(program(tmp_path), make_context(), MOST), Program)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_one_is_refused(tmp_path: Path, name: str) -> None:
    FORGED[name](program(tmp_path))
    with pytest.raises(PenstockError) as refused:
        load_checked(tmp_path, make_context(), MOST)
    assert refused.value.code == "program-invalid"
    assert str(refused.value).isprintable() or "\x1b" not in str(refused.value)
    assert not (tmp_path / "executed").exists()


def node(op: str, *args: Any, name: str = "y", **more: Any) -> dict[str, Any]:
    return {"name": name, "op": op, "args": list(args), "kwargs": {}, "layer": "l", "why": "", **more}


X = {"value": "x"}
ON_HOST: dict[str, tuple[list[dict[str, Any]], str]] = {
    "reads nothing": ([node("aten.neg.default", {"value": "z"})], "'z', which nothing before it computes"),
    "vast": ([node("aten.full.default", [1 << 20, 1 << 20], 0)], "over 268435456 elements"),
    "vast for its argument": ([node("aten.expand.default", X, [1 << 30, -1])], "over 268435456 elements"),
    "no ATen": ([node("prims.eval", X)], "no operation of ATen"),
    "a way through attributes": ([node("aten.__class__.mro.call", X)], "no operation of ATen"),
    "an argument of another kind": ([node("aten.neg.default", {"device": "cuda"})], "of the kind 'device'"),
    "no arguments": ([node("aten.neg.default") | {"args": 3}], "no list of arguments"),
    "no keywords": ([node("aten.neg.default", X) | {"kwargs": []}], "does not say what it is of"),
    "no name": ([node("aten.neg.default", X, name="")], "has no name"),
    "a layer where there are none": ([node("penstock.layer", X, number=0)], "no operation of ATen"),
}


@pytest.mark.parametrize("case", ON_HOST)
def test_a_forged_host_part_is_refused_before_it_runs(case: str, tmp_path: Path) -> None:
    nodes, words = ON_HOST[case]
    forge_host(program(tmp_path), {"before": nodes})
    with pytest.raises(PenstockError, match=words) as caught:
        load_checked(tmp_path, make_context(), MOST)
    assert caught.value.code == "program-invalid"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"results": ["z"]}, "the results reads 'z'"),
        ({"accelerator": {"inputs": ["z"], "outputs": ["x"]}}, "the accelerator reads 'z'"),
        ({"tables": {"z": 3}}, "a table reads 'z'"),
        ({"tables": {"x": "3"}}, "no number"),
        ({"before": [3]}, "TypeError"),
        ({"accelerator": []}, "TypeError"),
    ],
)
def test_a_host_part_of_another_form_is_refused(changed: dict[str, Any], words: str, tmp_path: Path) -> None:
    forge_host(program(tmp_path), changed)
    with pytest.raises(PenstockError, match=words):
        load_checked(tmp_path, make_context(), MOST)


def test_an_honest_host_part_is_read(tmp_path: Path) -> None:
    forge_host(program(tmp_path), {"before": [node("aten.neg.default", X)], "results": ["y"]})
    read = load_checked(tmp_path, make_context(), MOST)
    assert read.host is not None
    check_host_work(read)


_ONES = node("aten.full.default", [1 << 13, 1 << 13], 1, name="ones")
MUCH: dict[str, tuple[list[dict[str, Any]], str]] = {
    "results that fill the machine": (
        [_ONES, *(node("aten.add.Tensor", {"value": "ones"}, number, name=f"y{number}") for number in range(40))],
        "all results so far take",
    ),
    "a result that doubles": (
        [_ONES, *(node("aten.cat.default", [{"value": n}] * 2, name=f"y{i}") for i, n in enumerate(["ones", "y0", "y1",
         "y2", "y3", "y4"]))],
        "all results so far take",
    ),
    "products that never end": (
        [_ONES, *(node("aten.mm.default", {"value": "ones"}, {"value": "ones"}, name=f"y{n}") for n in range(25))],
        "all operations so far take",
    ),
    "a size that follows from data": ([node("aten.nonzero.default", X)], "nonzero"),
    "shapes that do not fit": ([_ONES, node("aten.mm.default", {"value": "ones"}, X)], "aten.mm"),
}  # fmt: skip


@pytest.mark.parametrize("case", MUCH)
def test_a_host_part_that_asks_for_too_much_is_refused_before_it_runs(case: str, tmp_path: Path) -> None:
    nodes, words = MUCH[case]
    forge_host(program(tmp_path), {"before": nodes})
    read = load_checked(tmp_path, make_context(), MOST)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PenstockError, match=words) as caught:
        check_host_work(read)
    assert caught.value.code == "host-part"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 1 << 18, "KiB: nothing was computed"


def test_a_call_of_a_layer_is_called_as_the_runtime_calls_it() -> None:
    assert host_check.LAYER == host.LAYER


def test_weights_may_stand_anywhere_among_the_inputs(tmp_path: Path) -> None:
    """As with the table of positions of T5, which is computed once and comes behind the first input."""
    described = ", ".join(
        f'{{penstock.name = "{name}", penstock.kind = "{kind}"}}' for name, kind in [("x", "input"), ("w", "param")]
    )
    graph = GRAPH.replace("(tensor<2xf32>) -> tensor<2xf32>", "(tensor<2xf32>, tensor<5xf32>) -> tensor<2xf32>")
    graph = graph.replace("}> ({", f", arg_attrs = [{described}]}}> ({{")
    graph = graph.replace("%x: tensor<2xf32>)", "%x: tensor<2xf32>, %w: tensor<5xf32>)")
    folder = program(tmp_path)
    (folder / "graph.mlir").write_text(graph)
    (folder / "signature.json").write_text(json.dumps({**SIGNATURE, "params": ["w"]}))
    np.savez(folder / "params.npz", w=np.zeros(5, np.float32))
    assert load_checked(folder, make_context(), MOST).signature.inputs[0].name == "x"
    (folder / "graph.mlir").write_text(graph.replace('"param"', '"input"'))
    with pytest.raises(PenstockError, match="the signature others"):
        load_checked(folder, make_context(), MOST)


def forge_host(folder: Path, changed: dict[str, Any]) -> None:
    graph = {
        "inputs": [PORT], "outputs": [PORT], "before": [], "after": [], "results": ["x"], "tables": {},
        "accelerator": {"inputs": ["x"], "outputs": ["x"]},
    }  # fmt: skip
    (folder / "host").mkdir()
    document = {"graph": graph | changed, "values": [], "inputs": 0, "outputs": 0}
    (folder / "host" / "graph.json").write_text(json.dumps(document))
    np.savez(folder / "host" / "arrays.npz")


@pytest.mark.parametrize("name", ["aten.add.out", "aten.add_.Tensor", "aten.rand.default"])
def test_the_host_writes_in_place_nowhere(name: str) -> None:
    with pytest.raises(PackageError, match="no operation that this runtime runs"):
        find_operation(torch, name)


def test_memory_that_nobody_wrote_is_zero() -> None:
    size = 1 << 16
    for _ in range(20):
        dirty = torch.full((size,), 7.0)
        del dirty
        assert not find_operation(torch, "aten.empty.memory_format")([size]).any()
    assert not find_operation(torch, "aten.empty_strided.default")([4, 4], [4, 1]).any()
