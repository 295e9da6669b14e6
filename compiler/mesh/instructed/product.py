"""What of tile programs an array runs: products that are added up round by round, and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.program import (
    MATRIX,
    MeshCompute,
    MeshLoad,
    MeshLoop,
    MeshStore,
    TileProgram,
    walk,
)

CODE = "not-a-product"


@dataclass(frozen=True)
class TileOperand:
    load: MeshLoad
    transposed: bool


@dataclass(frozen=True)
class TileProduct:
    """`left` @ `right` over all rounds of `loop` (once, if there is none), stored."""

    program: TileProgram
    left: TileOperand
    right: TileOperand
    store: MeshStore
    loop: MeshLoop | None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, columns, and what is added up in a round."""
        (rows, inner), (_, columns) = _shape(self.left), _shape(self.right)
        return rows, columns, inner

    @property
    def rounds(self) -> int:
        return 1 if self.loop is None else self.loop.extent.const


def _shape(operand: TileOperand) -> tuple[int, int]:
    rows, columns = operand.load.access.shape
    return (columns, rows) if operand.transposed else (rows, columns)


def product_of(program: TileProgram) -> TileProduct:
    """The product that a kernel is; what else it does is said with its line."""
    statements = list(walk(program.body))
    loads = [s for s in statements if isinstance(s, MeshLoad)]
    stores = [s for s in statements if isinstance(s, MeshStore)]
    loops = [s for s in statements if isinstance(s, MeshLoop)]
    computes = {s.result: s for s in statements if isinstance(s, MeshCompute)}
    dots = [s for s in computes.values() if s.kind == MATRIX]
    where = stores[0].where
    if len(loads) != 2 or len(stores) != 1 or len(dots) != 1 or len(loops) > 1:
        raise _not(program, f"it has {len(loads)} loads, {len(dots)} products, {len(stores)} stores, {len(loops)} "
                   "loops", where)  # fmt: skip
    others = sorted({s.kind for s in computes.values()} - {MATRIX, "add", "full", "cast", "trans"})
    if others:
        raise _not(program, f"it computes {', '.join(others)}", where)
    made = {load.result: load for load in loads}

    def behind(value: int) -> int:
        while value in computes and computes[value].kind == "cast":
            value = computes[value].operands[0]
        return value

    def operand(value: int) -> TileOperand | None:
        turned = False
        while value in computes and computes[value].kind in ("cast", "trans"):
            turned ^= computes[value].kind == "trans"
            value = computes[value].operands[0]
        return TileOperand(made[value], turned) if value in made else None

    left, right = (operand(value) for value in dots[0].operands[:2])
    if left is None or right is None or left.load is right.load:
        raise _not(program, "its product is not of two tiles that are loaded", where)
    if any(s.kind == "full" and s.setting != 0 for s in computes.values()):
        raise _not(program, "its sum does not begin at 0", where)
    loop = loops[0] if loops else None
    if loop is not None and loop.extent.terms:
        raise _not(program, "its rounds differ from instance to instance", loop.where)
    _check_sum(program, stores[0], loop, dots[0], computes, behind)
    for load in (left.load, right.load):
        if program.tensors[load.access.tensor].dtype != "int8":
            found = program.tensors[load.access.tensor]
            raise _not(program, f"{found.name} is {found.dtype}", load.where, "int8 is multiplied",
                       f"give --set {found.name}=int8")  # fmt: skip
        if not -128 <= load.other <= 127 or load.other != int(load.other):
            raise _not(program, f"what a mask leaves out is {load.other}", load.where, "it is an int8", "use 0")
    out = program.tensors[stores[0].access.tensor]
    if out.dtype != "int32" or any(s.dtype != "int32" for s in computes.values() if s.kind in (MATRIX, "add")):
        kinds = sorted({s.dtype for s in computes.values() if s.kind in (MATRIX, "add")} | {out.dtype})
        raise _not(program, f"its sums are {', '.join(kinds)}", where, "they are int32",
                   f"give --set {out.name}=int32 and add up in tl.int32")  # fmt: skip
    return TileProduct(program, left, right, stores[0], loop)


def _check_sum(
    program: TileProgram,
    store: MeshStore,
    loop: MeshLoop | None,
    dot: MeshCompute,
    computes: Mapping[int, MeshCompute],
    behind: Callable[[int], int],
) -> None:
    """What is stored is the sum of all rounds' products, and nothing but it."""
    value = behind(store.value)
    if loop is not None:
        rows = [row for row in loop.carried if row.after == value]
        if not rows or store in loop.body or dot not in loop.body:
            raise _not(program, "what it stores is not the sum of its rounds", store.where)
        first = computes.get(behind(rows[0].first))
        if first is None or first.kind != "full":
            raise _not(program, "its sum does not begin at 0", loop.where)
        begin, value = rows[0].inside, behind(rows[0].last)
    else:
        begin = -1
    added = computes.get(value)
    if added is not None and added.kind == "add":
        parts = {behind(one) for one in added.operands}
        rest = parts - {dot.result}
        zero = {one for one in rest if one in computes and computes[one].kind == "full"}
        if dot.result in parts and (rest == {begin} or (loop is None and rest == zero)):
            return
    elif loop is None and value == dot.result:
        return
    raise _not(program, "what it stores is not the sum of its rounds", store.where)


def _not(program: TileProgram, what: str, where: str, limit: str = "", hint: str = "") -> PenstockError:
    return PenstockError(
        code=CODE, what=f"{program.name} is not a product that an array runs: {what}", where=where,
        limit=limit or "tiles of two tensors are multiplied, added up from 0 round by round, and stored",
        hint=hint or "penstock mesh plans other kernels, and builds them as task programs",
    )  # fmt: skip
