"""Whole models that mean harm, through the importer behind the fence: each ends with a typed error or at a limit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.saved_program import FILES, load_checked
from penstock.services.steps.fence.plan import FenceLimits
from penstock.services.steps.fence.probe import fence_problem
from tests.hostile.behind_fence import Ended, as_ordinary_user, behind_fence, open_folder

pytestmark = pytest.mark.skipif(bool(fence_problem()), reason=f"no fence here: {fence_problem()}")

LIMITS = FenceLimits(cpu_seconds=40, memory_bytes=1 << 30, out_bytes=64 << 20, tmp_bytes=16 << 20, processes=32)
HONEST = (
    "import torch\ndef model():\n torch.manual_seed(1)\n"
    " return torch.nn.Linear(4, 2), (torch.zeros(1, 4),)\n"
)  # fmt: skip

PYTHON = {
    "reads the host": "def model(): raise RuntimeError(open('/etc/shadow').read())",
    "speaks to the terminal": "def model(): raise RuntimeError('\\x1b]0;evil\\x07\\x1b[2J')",
    "floods both streams": (
        "import sys\ndef model():\n for n in range(3000): print('x' * 10000); print('y' * 10000, file=sys.stderr)\n"
        " return 1"
    ),
    "holds memory": "def model():\n x = []\n while True: x.append(bytearray(1 << 24))",
    "asks torch for too much": (
        "import torch\ndef model(): return torch.nn.Linear(100000, 100000), (torch.zeros(1, 100000),)"
    ),
    "forks without end": "import os\ndef model():\n while True: os.fork()",
    "ends without a word": "import os\ndef model(): os._exit(0)",
    "ends by a signal": "import os, signal\ndef model(): os.kill(os.getpid(), signal.SIGKILL)",
    "writes nonsense as an error": (
        "import os\ndef model(): open('/out/error.json', 'w').write('[' * 60000); os._exit(1)"
    ),
    "writes a program of its own": (
        "import os\ndef model():\n open('/out/graph.mlir', 'w').write('evil')\n"
        " open('/out/signature.json', 'w').write('{}')\n os._exit(0)"
    ),
    "leaves links for outputs": (
        "import os\ndef model():\n os.symlink('/etc/passwd', '/out/graph.mlir')\n"
        " os.symlink('/proc/self/environ', '/out/error.json')\n os._exit(1)"
    ),
    "looks into /proc": (
        "import os\ndef model():\n others = [p for p in os.listdir('/proc') if p.isdigit() and p != str(os.getpid())]\n"
        " said = [open(f'/proc/{p}/environ', 'rb').read() for p in others]\n raise RuntimeError(repr(said))"
    ),
    "leaves a .pth": (
        "import sys\ndef model():\n site = next(p for p in sys.path if 'site' in p)\n"
        " open(site + '/evil.pth', 'w').write('import os')\n return 1"
    ),
    "opens sockets": "import socket\ndef model(): socket.create_connection(('127.0.0.1', 8750)); return 1",
    "fills the disk": "def model():\n with open('/tmp/x', 'wb') as f:\n  while True: f.write(bytes(1 << 20))",
    "a pickle for weights": (
        "import io, pickle, torch\nclass Evil:\n def __reduce__(self): return (open, ('/out/evil', 'w'))\n"
        "def model():\n m = torch.nn.Linear(4, 2)\n torch.save({'weight': Evil()}, '/tmp/w.pt')\n"
        " m.load_state_dict(torch.load('/tmp/w.pt')); return m, (torch.zeros(1, 4),)"
    ),
    "a pickle in a checkpoint of torch.package": (
        "import io, pickle, torch, zipfile\nclass Evil:\n def __reduce__(self): return (open, ('/out/evil', 'w'))\n"
        "def model():\n with zipfile.ZipFile('/tmp/m.pt', 'w') as z: z.writestr('m/data.pkl', pickle.dumps(Evil()))\n"
        " return torch.jit.load('/tmp/m.pt'), (torch.zeros(1, 4),)"
    ),
    "a weight that unpickles oddly": (
        "import torch\nclass Evil(torch.nn.Linear):\n def __reduce__(self): return (open, ('/out/evil', 'w'))\n"
        " def __deepcopy__(self, memo): raise SystemExit(0)\ndef model(): return Evil(4, 2), (torch.zeros(1, 4),) * 2"
    ),
    "loads a pickle": (
        "import pickle, torch\nclass Evil:\n def __reduce__(self): return (open, ('/out/evil', 'w'))\n"
        "def model():\n torch.save(Evil(), '/tmp/x.pt')\n return torch.load('/tmp/x.pt', weights_only=False), ()"
    ),
}  # fmt: skip
REFERENCES = (
    "zoo:mlp?hidden=4000000", "zoo:mlp?batch=1000000000", "zoo:mlp?inputs=99999999999999", "zoo:mlp?hidden=-1",
    "zoo:gpt2?size=real&d=1048576&heads=1024", "zoo:attention?seq=100000000", "zoo:../../etc/passwd",
    "torch.nn:Linear?in_features=1000000&out_features=1000000",
    "torch.nn:Embedding?num_embeddings=9999999999&embedding_dim=9",
)  # fmt: skip
LINALG = {
    "nested.mlir": '"builtin.module"() ({' * 30_000,
    "large.mlir": (
        "func.func @main(%x: tensor<1000000x1000000xf32>) -> tensor<1000000x1000000xf32> {\n"
        " return %x : tensor<1000000x1000000xf32>\n}"
    ),
    "splat.mlir": (
        "func.func @main(%x: tensor<4xf32>) -> tensor<4294967296xf32> {\n"
        " %c = arith.constant dense<1.0> : tensor<4294967296xf32>\n return %c : tensor<4294967296xf32>\n}"
    ),
    "bytes.mlir": "\x00\xff" * 1000,
}  # fmt: skip


def onnx_model(change: Callable[..., object]) -> bytes:
    onnx = pytest.importorskip("onnx")
    tensor = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [tensor("x", 1, [1, 4])], [tensor("y", 1, [1, 4])])
    change(onnx, graph)
    return onnx.helper.make_model(graph).SerializeToString()


def reads_a_file_beside(onnx: Any, graph: Any) -> None:
    weight = graph.initializer.add()
    weight.name, weight.data_type, weight.data_location = "w", 1, 1
    weight.dims.extend([4])
    for key, value in (("location", "../../../etc/passwd"), ("length", "16")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    graph.node[0].op_type = "Add"
    graph.node[0].input.append("w")


def fills_memory(onnx: Any, graph: Any) -> None:
    shape = graph.initializer.add()
    shape.name, shape.data_type = "s", 7
    shape.dims.extend([1])
    shape.int64_data.extend([1 << 40])
    node = graph.node.add()
    node.op_type = "ConstantOfShape"
    node.input.append("s")
    node.output.append("big")


def claims_a_size(onnx: Any, graph: Any) -> None:
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1 << 40


ONNX: dict[str, Callable[[], bytes]] = {
    "garbage": lambda: b"\x08" + bytes(range(256)) * 400,
    "cut off": lambda: onnx_model(lambda *_: None)[:-7],
    "a length without bytes": lambda: b"\x3a\xff\xff\xff\xff\x07",
    "nested groups": lambda: b"\x0b" * 100_000,
    "a file beside it": lambda: onnx_model(reads_a_file_beside),
    "a constant of a terabyte": lambda: onnx_model(fills_memory),
    "an input of a terabyte": lambda: onnx_model(claims_a_size),
}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
both_ways = pytest.mark.parametrize(
    "ordinary", [False, pytest.param(True, marks=needs_root)], ids=["own-user", "ordinary-user"]
)


def imported(folder: Path, reference: str, limits: FenceLimits = LIMITS, *, ordinary: bool = False) -> Ended:
    arguments = ["-m", "penstock.compiler.frontend", reference, "/out"]
    outputs = ("error.json", *FILES)
    if ordinary:
        return as_ordinary_user(folder, arguments, limits=limits, outputs=outputs)
    return behind_fence(folder, arguments, limits=limits, outputs=outputs, timeout=limits.seconds)


def is_refused(folder: Path, ended: Ended) -> bool:
    """By a typed error, at a limit, or for what it left; a program that came of it is a good one."""
    error = folder / "out" / "error.json"
    if ended.outcome == "ok":
        try:
            load_checked(folder / "out", make_context(), LIMITS.out_bytes)
        except PenstockError as refused:
            return refused.code == "program-invalid"
        return False
    if not error.exists():
        return ended.outcome in ("timeout", "out-of-memory", "signal") or ended.exit_code in (1, 137, 152)
    try:
        said = json.loads(error.read_text())
    except (ValueError, RecursionError):
        return True  # the import step reads it the same way
    assert re.fullmatch(r"[a-z][a-z0-9-]*", said["code"]), said
    assert said["code"] != "internal-error", said
    return True


def test_one_that_forges_its_program_is_refused() -> None:
    """The one of these that the fast suite runs."""
    with open_folder() as folder:
        (folder / "model").mkdir()
        (folder / "model" / "evil.py").write_text(PYTHON["writes a program of its own"])
        assert is_refused(folder, imported(folder, "/model/evil.py:model"))


@pytest.mark.slow
def test_an_honest_one_is_imported() -> None:
    with open_folder() as folder:
        (folder / "model").mkdir()
        (folder / "model" / "honest.py").write_text(HONEST)
        assert imported(folder, "/model/honest.py:model").outcome == "ok"
        assert load_checked(folder / "out", make_context(), LIMITS.out_bytes).params


@pytest.mark.slow
@both_ways
@pytest.mark.parametrize("name", PYTHON)
def test_hostile_python(name: str, ordinary: bool) -> None:
    with open_folder() as folder:
        (folder / "model").mkdir()
        (folder / "model" / "evil.py").write_text(PYTHON[name])
        ended = imported(folder, "/model/evil.py:model", ordinary=ordinary)
        assert is_refused(folder, ended), ended
        assert "\x1b" not in ended.said
        assert "evil" not in ended.outputs


@pytest.mark.slow
def test_an_endless_loop_ends_in_its_time() -> None:
    with open_folder() as folder:
        (folder / "model").mkdir()
        (folder / "model" / "evil.py").write_text("def model():\n while True: pass")
        ended = imported(folder, "/model/evil.py:model", replace(LIMITS, cpu_seconds=15))
        assert ended.outcome == "timeout" or ended.exit_code == 152


@pytest.mark.slow
@both_ways
@pytest.mark.parametrize("reference", REFERENCES)
def test_references_that_ask_for_too_much(reference: str, ordinary: bool) -> None:
    with open_folder() as folder:
        ended = imported(folder, reference, ordinary=ordinary)
        assert is_refused(folder, ended), ended
        assert (folder / "out" / "error.json").exists(), "told by sizes, before memory is spent"


@pytest.mark.slow
@both_ways
@pytest.mark.parametrize("name", LINALG)
def test_hostile_linalg(name: str, ordinary: bool) -> None:
    with open_folder() as folder:
        (folder / "model").mkdir()
        (folder / "model" / name).write_text(LINALG[name], encoding="latin-1")
        ended = imported(folder, f"/model/{name}", ordinary=ordinary)
        assert is_refused(folder, ended), ended


@pytest.mark.slow
@both_ways
@pytest.mark.parametrize("name", ONNX)
def test_hostile_onnx(name: str, ordinary: bool) -> None:
    with open_folder() as folder:
        (folder / "model").mkdir()
        (folder / "model" / "evil.onnx").write_bytes(ONNX[name]())
        ended = imported(folder, "/model/evil.onnx", ordinary=ordinary)
        assert is_refused(folder, ended), ended
