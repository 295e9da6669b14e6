"""A kernel on an array: the plan whose program takes the fewest cycles, among the planner's best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.instructed.area import ArrayTable
from penstock.compiler.mesh.instructed.array import CoreArray
from penstock.compiler.mesh.instructed.cycles import ArrayRun, simulate_program
from penstock.compiler.mesh.instructed.estimate import ProductShape
from penstock.compiler.mesh.instructed.product import TileProduct, product_of
from penstock.compiler.mesh.instructed.programs import ArrayProgram
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import Reuse, plan_programs
from penstock.compiler.mesh.program import TileProgram

BLOCKS = (4, 8, 16, 32, 64, 128)
"""Blocks that are tried where a kernel leaves them open: tiles of cores are smaller than those of larger machines."""
PLANNED = 6
"""So many of them, the quickest by the estimate, are planned."""
MOST_SIMULATED = 1 << 29
"""Cycles of cores, all plans of a shape together; the first plan is always simulated."""


@dataclass(frozen=True)
class ArrayPlan:
    program: ArrayProgram
    run: ArrayRun
    modelled: float
    """What the planner's simulator, which moves tiles as a whole, said."""
    tried: int

    @property
    def bound(self) -> int:
        """Steps of the multipliers, if all of them worked all the time."""
        product, array = self.program.product, self.program.array
        rows, columns, inner = product.sizes
        each = -(-rows // array.tall) * -(-columns // array.wide) * -(-inner // array.deep)
        return -(-product.program.instances * product.rounds * each // array.cores)


def plan_product(programs: Sequence[TileProgram], machine: Machine, array: CoreArray, top: int) -> ArrayPlan:
    """Programs are one kernel with different blocks; those whose tiles an array does not hold are left out."""
    fitting: list[tuple[TileProgram, TileProduct]] = []
    errors: list[PenstockError] = []
    for program in programs:
        try:
            product = product_of(program)
            _check_tiles(product, array)
            fitting.append((program, product))
        except PenstockError as error:
            errors.append(error)
    if not fitting:
        raise errors[0]
    table = ArrayTable.of([array])
    fitting.sort(key=lambda row: float(ProductShape.of(row[1]).cycles(table)[0]))
    fitting = fitting[:PLANNED]
    products = {id(program): product for program, product in fitting}
    planned = plan_programs([program for program, _ in fitting], machine, top, Reuse())
    best: ArrayPlan | None = None
    tried = spent = 0
    for measured in planned.measured:
        if best is not None and spent > MOST_SIMULATED:
            break
        try:
            program = ArrayProgram(array, measured.plan, products[id(measured.plan.facts.program)])
            run = simulate_program(program)
        except PenstockError as error:
            errors.append(error)
            continue
        tried, spent = tried + 1, spent + run.cycles * array.cores
        if best is None or run.cycles < best.run.cycles:
            best = ArrayPlan(program, run, measured.run.cycles, 0)
    if best is None:
        raise errors[-1]
    return replace(best, tried=tried)


def _check_tiles(product: TileProduct, array: CoreArray) -> None:
    rows, columns, inner = product.sizes
    steps = (-(-rows // array.tall), -(-columns // array.wide), -(-inner // array.deep))
    needs = (
        ("sums", steps[0] * steps[1] * array.entry, array.sums * array.entry),
        ("the left operand", steps[0] * steps[2] * array.tall * array.deep, array.left * array.word),
        ("the right operand", steps[1] * steps[2] * array.wide * array.deep, array.right * array.word),
    )
    for name, size, room in needs:
        if size > room:
            raise PenstockError(
                code="array-too-small", what=f"a tile of {name} has {size:,} bytes", where=product.store.where,
                limit=f"a core has {room:,} for it", hint="use smaller blocks",
            )  # fmt: skip
