"""What the example kernels must answer, in NumPy, and how a plan of one is held against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import Planned, Reuse, plan_programs
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh.triton.read import open_kernel, read_kernel
from penstock.compiler.tasks.source import ProgramText
from tests.mesh.plan_execution import execute
from tests.mesh.tile_values import MeshArray, interpret, numpy_type

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "meshes"
Tensors = dict[str, MeshArray]


@dataclass(frozen=True)
class Case:
    file: str
    given: dict[str, int | float | str]
    answer: Callable[[Tensors], MeshArray]
    out: str
    options: dict[str, str] = field(default_factory=dict[str, str])
    kernel: str = ""

    def program(self) -> TileProgram:
        path = EXAMPLES / f"{self.file}.py"
        return read_kernel(open_kernel(ProgramText(path.name, path.read_text()), self.kernel), self.given)

    def tensors(self, program: TileProgram) -> Tensors:
        draw = np.random.default_rng(7)
        return {
            name: (draw.standard_normal(tensor.elements) * 0.5).astype(numpy_type(tensor.dtype))
            for name, tensor in program.tensors.items()
        }

    def interpreted(self) -> float:
        program = self.program()
        tensors = self.tensors(program)
        wanted = self.answer({name: value.astype(np.float64) for name, value in tensors.items()})
        interpret(program, tensors)
        return _error(tensors[self.out], wanted)

    def planned(self, machine: Machine, top: int = 3) -> Planned:
        return plan_programs([self.program()], machine, top, Reuse())

    def check(self, machine: Machine) -> float:
        """The largest error of the best plans, executed as they say."""
        program = self.program()
        worst = 0.0
        for measured in self.planned(machine).measured:
            tensors = self.tensors(program)
            wanted = self.answer({name: value.astype(np.float64) for name, value in tensors.items()})
            tensors[self.out][:] = 0
            execute(measured.plan, Traffic(machine), tensors)
            worst = max(worst, _error(tensors[self.out], wanted))
        return worst


def _error(found: MeshArray, wanted: MeshArray) -> float:
    return float(np.abs(found - wanted.ravel()).max() / np.abs(wanted).max())


def _softmax(x: MeshArray) -> MeshArray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q: MeshArray, k: MeshArray, v: MeshArray, *, causal: bool = False) -> MeshArray:
    """By heads."""
    scores = q @ k.transpose(0, 2, 1) * 0.125
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    return _softmax(scores) @ v


def mlp(x: MeshArray, up: MeshArray, down: MeshArray) -> MeshArray:
    hidden = x @ up
    return (hidden / (1 + np.exp(-hidden))) @ down


def norm_gemm(x: MeshArray, w: MeshArray) -> MeshArray:
    normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return normal @ w


def scan(x: MeshArray, delta: MeshArray, a: MeshArray, b: MeshArray, c: MeshArray) -> MeshArray:
    state, found = np.zeros(a.shape), list[MeshArray]()
    for at in range(len(x)):
        state = state * np.exp(delta[at][:, None] * a) + (delta[at] * x[at])[:, None] * b[at]
        found.append(state @ c[at])
    return np.stack(found)


def _attention(causal: bool) -> Callable[[Tensors], MeshArray]:
    return lambda t: attention(*(t[name].reshape(2, 256, 64) for name in "QKV"), causal=causal)


def _scores(t: Tensors) -> MeshArray:
    return t["Q"].reshape(2, 256, 64) @ t["K"].reshape(2, 256, 64).transpose(0, 2, 1) * 0.125


def _values(t: Tensors) -> MeshArray:
    return t["P"].reshape(2, 256, 256) @ t["V"].reshape(2, 256, 64)


def _decode(t: Tensors) -> MeshArray:
    return attention(t["q"].reshape(8, 16, 64), t["k"].reshape(8, 512, 64), t["v"].reshape(8, 512, 64))


def _mlp(t: Tensors) -> MeshArray:
    return mlp(t["x"].reshape(256, 128), t["up"].reshape(128, 256), t["down"].reshape(256, 128))


def _silu(x: MeshArray) -> MeshArray:
    return x / (1 + np.exp(-x))


def _through(t: Tensors, weights: str) -> MeshArray:
    return t["x"].reshape(128, 128) @ t[weights].reshape(128, 256)


def _norm(t: Tensors) -> MeshArray:
    return norm_gemm(t["x"].reshape(128, 256), t["w"].reshape(256, 128))


def _scan(t: Tensors) -> MeshArray:
    x, delta, b, c = (t[name].reshape(32, -1) for name in ("x", "delta", "b", "c"))
    return scan(x, delta, t["a"].reshape(128, 16), b, c)


def _gemm(t: Tensors) -> MeshArray:
    return t["a_ptr"].reshape(200, 72) @ t["b_ptr"].reshape(72, 136)


_SIZES: dict[str, int | float | str] = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 16}
_ATTENTION: dict[str, int | float | str] = {"BLOCK_M": 32, "BLOCK_N": 32}
_BLOCKS: dict[str, int | float | str] = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}
CASES = {
    "gemm": Case("gemm", {"M": 200, "N": 136, "K": 72, **_SIZES}, _gemm, "c_ptr"),
    "batched_gemm": Case(
        "batched_gemm", _BLOCKS,
        lambda t: t["a"].reshape(4, 128, 128) @ t["b"].reshape(4, 128, 128), "c",
    ),
    "attention": Case("flash_attention", _ATTENTION, _attention(False), "Out"),
    "causal_attention": Case("flash_attention", {"CAUSAL": 1, **_ATTENTION}, _attention(True), "Out"),
    "scores": Case("attention_in_turn", _ATTENTION, _scores, "S", kernel="scores"),
    "softmax": Case(
        "attention_in_turn", {"BLOCK_M": 16}, lambda t: _softmax(t["S"].reshape(2, 256, 256)), "P", kernel="softmax"
    ),
    "values": Case("attention_in_turn", _ATTENTION, _values, "Out", kernel="values"),
    "flash_decode": Case("flash_decode", {"BLOCK": 64}, _decode, "out"),
    "mlp": Case("mlp", {"BLOCK_M": 32, "BLOCK_H": 32}, _mlp, "y"),
    "norm_gemm": Case("norm_gemm", _BLOCKS, _norm, "y"),
    "scan": Case("scan", {"BLOCK_C": 16}, _scan, "y"),
    "swiglu": Case(
        "swiglu", _BLOCKS, lambda t: _silu(_through(t, "w_gate")) * _through(t, "w_up"), "y", kernel="swiglu"
    ),
    "gate": Case("swiglu", _BLOCKS, lambda t: _silu(_through(t, "w_gate")), "gated", kernel="gate"),
    "up": Case(
        "swiglu", _BLOCKS, lambda t: _through(t, "w_up") * t["gated"].reshape(128, 256), "y", kernel="up"
    ),
}  # fmt: skip
