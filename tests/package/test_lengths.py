"""Packages whose calls say their sizes: every one is answered, and others are refused with what would fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from penstock.compiler.frontend.lengths import import_lengths
from penstock.compiler.lengths import Length
from penstock.compiler.pipeline import Lowered, prepare
from penstock.compiler.pipeline.lower import at_lengths
from penstock.compiler.reference import parse_reference
from penstock.compiler.runtime import penstock_runtime
from penstock.compiler.runtime.penstock_runtime import Accelerator, PackageError
from penstock.compiler.runtime.penstock_runtime.command import self_test
from tests.package.test_held import packaged_program

MOST = 5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lowered, Accelerator]]:
    folder = tmp_path_factory.mktemp("lengths")
    reference = parse_reference("zoo:attention?d=4&heads=2")
    program = prepare(import_lengths(reference, [Length("seq", 1, MOST)], lambda _: None), "w8a8")
    lowered, checked = packaged_program(program, folder, "w8a8")
    assert checked.passed, checked.differences()
    assert {"C++ at seq=1", "stream at seq=1", "interpreter at seq=1"} <= {one.level for one in checked.verify.lengths}
    readme = (folder / "package" / "README.md").read_text()
    assert f"Each call may have other sizes: `seq` from 1 to {MOST}. Give inputs" in readme
    with penstock_runtime.load(folder / "package") as accelerator:
        yield lowered, accelerator


def test_every_length_is_answered(made: tuple[Lowered, Accelerator]) -> None:
    lowered, accelerator = made
    for seq in range(1, MOST + 1):
        own = at_lengths(lowered, {"seq": seq})
        signature, random = own.program.signature, np.random.default_rng(seq)
        given = [random.standard_normal(port.shape).astype(np.float32) for port in signature.inputs]
        wanted = own.run_itensor(own.program.quantise_inputs(given))
        exact = accelerator.run_exact(given)
        assert [one.shape for one in exact] == [port.shape for port in signature.outputs]
        for one, other in zip(exact, wanted, strict=True):
            np.testing.assert_array_equal(one.reshape(-1), other.reshape(-1))
        assert [one.shape for one in accelerator.run_all(given)] == [one.shape for one in exact]


def test_the_self_test_runs_other_lengths(
    made: tuple[Lowered, Accelerator], capsys: pytest.CaptureFixture[str]
) -> None:
    assert self_test(made[1], as_json=False) == 0
    assert "values have the bits of the interpreter, 3 other sizes" in capsys.readouterr().out


def test_other_sizes_are_refused_with_what_fits(made: tuple[Lowered, Accelerator]) -> None:
    _, accelerator = made
    shapes = [port.shape for port in accelerator.inputs]

    def refused(shapes: list[tuple[int, ...]]) -> str:
        with pytest.raises(PackageError) as raised:
            accelerator.run(*(np.zeros(shape, np.float32) for shape in shapes))
        return str(raised.value)

    for wrong in (0, MOST + 1):
        said = refused([tuple(wrong if n == MOST else n for n in shape) for shape in shapes])
        assert f"seq is {wrong} - this accelerator takes 1 to {MOST}" in said
    assert "pass (" in refused([(7,), *shapes[1:]])
    assert "the model takes" in refused(shapes[1:])
