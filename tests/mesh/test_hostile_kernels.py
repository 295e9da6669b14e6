"""Kernels' files that nobody means well: each is refused at its line, or read as Triton reads it, in a moment."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.triton.blocks import programs_of
from penstock.compiler.mesh.triton.calls import INSTEAD
from penstock.compiler.mesh.triton.read import open_kernel, read_kernel
from penstock.compiler.tasks.source import ProgramText
from tests.mesh.tile_values import interpret

HEAD = "import triton\nimport triton.language as tl\n\n\n"
LOAD = "at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nv = tl.load(x + at, mask=at < n)\n"
STORE = "tl.store(y + at, v, mask=at < n)"
GIVEN: dict[str, int | float | str] = {"n": 256, "BLOCK": 32, "grid": "8"}


def kernel(body: str, before: str = "", args: str = "x, y, n, BLOCK: tl.constexpr") -> str:
    lines = "\n".join("    " + line for line in body.splitlines())
    return f"{HEAD}{before}@triton.jit\ndef k({args}):\n{lines}\n"


def between(line: str) -> str:
    return kernel(f"{LOAD}{line}\n{STORE}")


CALLS = "".join(f"@triton.jit\ndef f{i}(a):\n    return {' + '.join([f'f{i + 1}(a)'] * 40)}\n\n" for i in range(7))
NESTED = "".join("    " * i + f"for i{i} in range(2):\n" for i in range(18)) + "    " * 18 + "v = v + 1"
REFUSED = {
    "a sum of nothing": (between("v = tl.sum(tl.sum(v, 0), 0)"), r"k.py:9:9: axis 0 of a tile of 0 dims"),
    "an axis that is not there": (between("v = tl.cumsum(v, 3)"), r"axis 3 of a tile of 1 dims"),
    "no argument": (between("v = tl.exp()"), r"k.py:9:9: exp lacks an argument"),
    "half of the arguments": (between("v = tl.maximum(v)"), r"maximum lacks an argument"),
    "arguments from afar": (between("v = tl.exp(**v)"), r"exp lacks an argument"),
    "a place beyond a tuple": (between("v = v * v.shape[5]"), r"there is no 5 of 1"),
    "a part of a tile": (between("v = v[0:4]"), r"only \[:, None\]"),
    "a mask turned round": (kernel(f"{LOAD.replace('at < n', '~(at < n)')}{STORE}"), r"k.py:8:30: ~ is not read"),
    "a way out of a loop": (between("for i in range(4):\n    v = v + 1\n    return"), r"left before its end"),
    "else of a loop": (between("for i in range(4):\n    v = v + 1\nelse:\n    v = v * 0"), r"a loop with else"),
    "numbers that grow": (kernel("b = 99999999999\n" + "b = b * b\n" * 60 + LOAD + STORE), r"too large for a number"),
    "words by their order": (between("if 'a' < 'b':\n    v = v * 2"), r"words and types"),
    "deep expressions": (between(f"v = {'-' * 500}v"), r"nested too deeply"),
    "calls that multiply": (
        kernel(f"{LOAD}v = f0(v)\n{STORE}", CALLS + "@triton.jit\ndef f7(a):\n    return a\n\n"),
        r"too long, with all that it calls.*400000",
    ),
    "loops in loops": (between(NESTED), r"the kernel is too long.*20000 statements"),
    "a grid taken apart": (
        kernel("p = tl.program_id(0)\nat = 0\n" + "at = at * 3 + p % 2\np = p // 2\n" * 12 + "tl.store(y + at, 1.0)"),
        r"take the grid apart into \d+ dims",
    ),
    "code of Python": (between("v = v.__class__.__mro__"), r"nothing is known of .__class__"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_kernel_is_is_refused_at_its_line(name: str) -> None:
    text, said = REFUSED[name]
    given = {**GIVEN, "grid": 4096} if "grid" in name else GIVEN
    with pytest.raises(PenstockError, match=said) as caught:
        read_kernel(open_kernel(ProgramText("k.py", text), "", given), given)
    assert caught.value.where.startswith("k.py:")


def test_blocks_that_are_left_open_by_the_dozen_are_not_all_tried() -> None:
    names = [f"BLOCK_{i}" for i in range(30)]
    text = kernel(
        f"{LOAD}{STORE}", args="x, y, n, BLOCK: tl.constexpr, " + ", ".join(f"{n}: tl.constexpr" for n in names)
    )
    with pytest.raises(PenstockError, match=r"30 blocks are left open.*8,192 choices"):
        programs_of(open_kernel(ProgramText("k.py", text), "", GIVEN), GIVEN)


def test_what_stands_behind_a_return_does_not_count() -> None:
    text = between("if BLOCK > 2:\n    tl.store(y + at, v * 2)\n    return")
    program = read_kernel(open_kernel(ProgramText("k.py", text), "", GIVEN), GIVEN)
    tensors = {name: np.arange(256).astype(np.float16) for name in ("x", "y")}
    interpret(program, tensors)
    np.testing.assert_array_equal(tensors["y"], 2 * tensors["x"])


@pytest.mark.parametrize(
    "name", ["rand", "atomic_add", "make_block_ptr", "make_tensor_descriptor", "argmax", "erf", "join", "device_print"]
)
def test_functions_that_are_not_read_say_what_to_write_instead(name: str) -> None:
    with pytest.raises(PenstockError) as caught:
        read_kernel(open_kernel(ProgramText("k.py", between(f"v = tl.{name}(v)")), "", GIVEN), GIVEN)
    assert caught.value.where == "k.py:9:9"
    assert caught.value.hint == INSTEAD[name]
