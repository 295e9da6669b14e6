"""Slices and concatenations: what they become, where they go, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import quantise, simplify
from penstock.compiler.transforms.parts import cut_dims
from penstock.compiler.transforms.reshapes import refinement
from tests.frontend.models import Lambda, import_module, make, seeded


def canonical(function: Any, *shapes: tuple[int, ...], **parts: Any) -> Program:
    module = make(lambda: Lambda(function, **{name: build() for name, build in parts.items()}))
    program = simplify(import_module(module, *(seeded(s, i) for i, s in enumerate(shapes))))
    assert program.samples is not None
    for ours, theirs in zip(run(program, program.samples.inputs), program.samples.outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    return program


def moves(program: Program) -> list[tensor.ExtractSliceOp | tensor.ConcatOp]:
    return [op for op in program.module.walk() if isinstance(op, tensor.ExtractSliceOp | tensor.ConcatOp)]


def generics(program: Program) -> int:
    return sum(isinstance(op, linalg.GenericOp) for op in program.module.walk())


def test_a_slice_of_two_dims_becomes_two_slices() -> None:
    program = canonical(lambda m, x: torch.relu(x[1:3, 2:6]), (4, 8))
    slices = [op for op in moves(program) if isinstance(op, tensor.ExtractSliceOp)]
    assert [cut_dims(op) for op in slices] == [[0], [1]]


def test_a_slice_of_a_slice_and_of_one_part_is_one_slice() -> None:
    assert len(moves(canonical(lambda m, x: torch.relu(x[:, 1:7][:, 2:4]), (4, 8)))) == 1
    whole_part = canonical(lambda m, x, y: torch.relu(torch.cat([x, y], 1)[:, 8:]), (4, 8), (4, 3))
    assert moves(whole_part) == []


def test_slices_of_parameters_are_made_at_compile_time() -> None:
    program = canonical(lambda m, x: x @ m.fc.weight[:, :4] + m.fc.bias[2:6], (4, 8), fc=lambda: nn.Linear(8, 8))
    assert moves(program) == []
    assert sorted(value.shape for value in program.params.values()) == [(4,), (8, 4)]


def test_a_transpose_moves_behind_slices_and_joins() -> None:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        a, b = x.transpose(0, 1).chunk(2, 0)
        return torch.relu(torch.cat([b, a], 0))

    program = canonical(forward, (4, 8))
    assert len(moves(program)) == 3
    assert generics(program) == 1


def test_a_cut_at_the_border_of_heads_follows_the_heads() -> None:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        q, k = (part.view(5, 2, 3).transpose(0, 1) for part in m.fc(x).chunk(2, 1))
        return torch.bmm(q, k.transpose(1, 2))

    canonical(forward, (5, 8), fc=lambda: nn.Linear(8, 12))


def test_one_row_joined_to_a_cache() -> None:
    program = canonical(
        lambda m, cache, x: torch.cat([cache, m.fc(x)], 0).sum(1), (3, 4), (1, 8), fc=lambda: nn.Linear(8, 4)
    )
    (join,) = moves(program)
    assert [operand.type.get_shape() for operand in join.operands] == [(3, 4), (1, 4)]  # type: ignore[attr-defined]


def test_one_row_taken_out() -> None:
    canonical(lambda m, x: torch.relu(x[2]) + x[0], (4, 8))


def test_a_parameter_joined_to_values() -> None:
    program = canonical(
        lambda m, x: torch.cat([m.token.weight, torch.relu(x)], 0).amax(1), (3, 8), token=lambda: nn.Linear(8, 1)
    )
    assert len(moves(program)) == 1


def test_a_number_joined_to_values_is_a_parameter_with_numbers() -> None:
    """An array of one number takes no memory, and is not for that a weight that was not loaded."""
    program = canonical(lambda m, x: torch.cat([torch.ones_like(x), torch.relu(x)], 0).amax(1), (3, 8))
    assert program.has_weights
    (ones,) = program.params.values()
    assert ones.flags.c_contiguous
    assert (ones == 1).all()


def test_results_may_be_slices_and_joins() -> None:
    canonical(lambda m, x: (torch.relu(x)[1:3], torch.cat([torch.relu(x), x], 0)), (4, 8))


def test_joined_values_share_a_scale() -> None:
    def forward(m: Any, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        return torch.cat([cache, m.fc(x)], 0) @ m.out.weight.t()

    program = canonical(forward, (2, 8), (3, 8), fc=lambda: nn.Linear(8, 8), out=lambda: nn.Linear(8, 4))
    assert program.samples is not None
    quantised = quantise(program)
    got = quantised.dequantise_outputs(run(quantised, quantised.quantise_inputs(program.samples.inputs)))[0]
    wanted = program.samples.outputs[0]
    assert np.max(np.abs(got - wanted)) < 0.03 * np.max(np.abs(wanted))
    assert quantised.signature.inputs[1].quant is not None


def test_a_slice_with_steps_is_cut() -> None:
    canonical(lambda m, x: torch.relu(m.fc(x)[:, ::2]), (8, 8), fc=lambda: nn.Linear(8, 6))


@pytest.mark.parametrize(
    ("a", "b", "finest"),
    [
        ((6, 4), (24,), (6, 4)),
        ((2, 12), (8, 3), (2, 4, 3)),
        ((4, 6), (6, 4), None),
        ((2, 3, 4), (6, 4), (2, 3, 4)),
        ((5,), (5,), (5,)),
        ((1, 4), (4,), None),
    ],
)
def test_the_coarsest_common_split(a: tuple[int, ...], b: tuple[int, ...], finest: tuple[int, ...] | None) -> None:
    assert refinement(a, b) == finest
    assert refinement(b, a) == finest


def test_reshapes_of_one_head_do_not_drive_each_other_in_a_circle() -> None:
    """One head of keys, cut from a joint product and turned in halves: its dim of one element goes no further than its
    readers."""

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 32), nn.Linear(16, 16)

        def turn(self, x: torch.Tensor, cos: torch.Tensor) -> torch.Tensor:
            return x * cos + torch.cat([-x[..., 4:], x[..., :4]], -1) * (1 - cos)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.qkv(x)
            q, k, v = (part.view(1, 8, -1, 8).transpose(1, 2) for part in (y[..., :16], y[..., 16:24], y[..., 24:]))
            angles = torch.arange(8.0)[:, None] * torch.arange(4.0)[None]
            cos = torch.cat([angles, angles], -1).cos()[None, None]
            k, v = (part[:, :, None].expand(1, 1, 2, 8, 8).reshape(1, 2, 8, 8) for part in (self.turn(k, cos), v))
            z = torch.softmax(self.turn(q, cos) @ k.transpose(2, 3), -1) @ v
            return self.out(z.transpose(1, 2).reshape(1, 8, 16))

    program = simplify(import_module(make(Turned), seeded((1, 8, 16))))
    assert program.samples is not None
    np.testing.assert_allclose(
        run(program, program.samples.inputs)[0], program.samples.outputs[0], rtol=1e-4, atol=1e-5
    )


def test_more_dims_than_a_model_has_are_refused() -> None:
    dims = 17
    program = import_module(
        make(lambda: Lambda(lambda _, x: x.reshape([2] * dims).transpose(0, -1).cos().reshape(4, -1).exp())),
        seeded((4, 2 ** (dims - 2))),
    )
    with pytest.raises(PenstockError, match="split its dims in different ways"):
        simplify(program)
