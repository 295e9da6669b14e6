"""A file with a `@triton.jit` function as a tile program. Python's parser reads it; nothing of it is executed.

The file's own constants (`M = 1024`) give the arguments of the same name, its `grid` says how many instances there
are, as with Triton; `given` values come before both. A pointer is named in `given` only to say its type.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from penstock.compiler.errors import nearest
from penstock.compiler.mesh.program import (
    Carried,
    GridDim,
    MeshLoad,
    MeshLoop,
    MeshStore,
    MeshTensor,
    TileProgram,
    walk,
)
from penstock.compiler.mesh.triton.around import (
    EXPLORED,
    MOST_INSTANCES,
    MOST_NESTED,
    MOST_STATEMENTS,
    KernelFile,
    KernelSurroundings,
    is_constexpr,
)
from penstock.compiler.mesh.triton.expressions import DTYPES, KernelArguments
from penstock.compiler.mesh.triton.values import Data, KernelIndex, TritonValue
from penstock.compiler.tasks.affine import Affine
from penstock.compiler.tasks.source import ProgramText, dotted, is_jit

MOST_DIMS = 6
"""Of a grid, with those that it is taken apart into: orders of loops are tried, all of them."""


def open_kernel(text: ProgramText, name: str = "", given: Mapping[str, int | float | str] | None = None) -> KernelFile:
    tree = text.parse()
    kernels = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and is_jit(n)}
    if not kernels:
        raise text.error(tree, "there is no @triton.jit function", "mark the kernel with @triton.jit")
    if name and name not in kernels:
        raise text.error(tree, f"there is no kernel {name!r}", nearest(name, kernels, f"one of {', '.join(kernels)}"))
    kernel = kernels[name] if name else _last(kernels)
    known = set(given or {}) | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    defaults = {arg.arg for arg in kernel.args.args[len(kernel.args.args) - len(kernel.args.defaults) :]}
    blocks = tuple(
        a.arg for a in kernel.args.args
        if is_constexpr(a) and a.arg not in known and a.arg not in defaults and EXPLORED.search(a.arg)
    )  # fmt: skip
    return KernelFile(text, tree, kernel, {n: f for n, f in kernels.items() if n != kernel.name}, blocks)


def _last(kernels: Mapping[str, ast.FunctionDef]) -> ast.FunctionDef:
    """The last kernel of a file that none of its kernels calls."""
    called = {
        one.func.id
        for kernel in kernels.values()
        for one in ast.walk(kernel)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    free = [kernel for name, kernel in kernels.items() if name not in called]
    return (free or list(kernels.values()))[-1]


def read_kernel(file: KernelFile, given: Mapping[str, int | float | str]) -> TileProgram:
    """The kernel with these values for its arguments and the file's constants."""
    try:
        return _Reader(file, given).program()
    except RecursionError:
        raise file.text.error(
            file.kernel, "its expressions are nested too deeply", "give parts of them names"
        ) from None


class _Reader(KernelSurroundings):
    def program(self) -> TileProgram:
        self.names.update({name: value for name, value in self.given.items() if value not in DTYPES})
        self.expressions.helpers, self.expressions.inlined = self.file.helpers, self._inlined
        grid = self._constants()
        self.outside = dict(self.names)
        self._arguments()
        extents = self._grid(grid)
        self.expressions.extents, self.expressions.dtypes = extents, self.tensors
        self.expressions.grid = [self.emitter.counter(size, f"pid{i}") for i, size in enumerate(extents)]
        self._statements(self.file.kernel.body)
        body = self.emitter.finished(self.emitter.body)
        dims = tuple(GridDim(k, name, self.emitter.trips[k]) for k, name in self.emitter.grid)
        if len(dims) > MOST_DIMS:
            names = ", ".join(dim.name for dim in dims[:MOST_DIMS])
            raise self.text.error(
                self.file.kernel, f"// and % take the grid apart into {len(dims)} dims: {names} ...",
                "give the grid more dims, and the kernel fewer divisions", f"{MOST_DIMS} dims",
            )  # fmt: skip
        sizes = dict.fromkeys(self.tensors, 0)
        written: set[str] = set()
        for statement in walk(body):
            if isinstance(statement, MeshLoad | MeshStore):
                access = statement.access
                sizes[access.tensor] = max(sizes[access.tensor], self._reach(statement))
                if isinstance(statement, MeshStore):
                    written.add(access.tensor)
        if not written:
            raise self.text.error(self.file.kernel, "the kernel stores nothing", "store its result with tl.store")
        given = {arg.arg: self.names.get(arg.arg) for arg in self.file.kernel.args.args if is_constexpr(arg)}
        blocks = {name: value for name, value in given.items() if isinstance(value, int)}
        return TileProgram(
            self.file.kernel.name, dims, {n: MeshTensor(n, self.tensors[n], size) for n, size in sizes.items() if size},
            frozenset(written), self.emitter.shapes, body, self.emitter.trips, blocks,
        )  # fmt: skip

    def _reach(self, statement: MeshLoad | MeshStore) -> int:
        """One behind the last element that is touched. A mask keeps a dim's places below where it ends."""
        access = statement.access
        low, high = access.base.extremes(self.emitter.trips)
        spans = [(s, n - 1) for s, n in zip(access.strides, access.shape, strict=True)]
        if low + sum(min(0, s * n) for s, n in spans) < 0 and not access.mask:
            raise self.text.error(
                _at(statement.where), "places before the tensor's first are touched", "mask them, or add an offset"
            )
        reach = high + sum(max(0, s * n) for s, n in spans) + 1
        for bound in access.mask:
            # `offs < N` cuts the places beyond N off, of the dim along which both go on
            for stride, step, size in zip(access.strides, bound.strides, access.shape, strict=True):
                if step > 0 and stride % step == 0:
                    over = bound.base.extremes(self.emitter.trips)[1] + step * (size - 1)
                    reach -= max(0, over + 1) * (stride // step)
                    break
        return max(reach, 1)

    # the kernel's statements

    def _statements(self, body: list[ast.stmt]) -> bool:
        """Whether a `return` was met, behind which nothing counts."""
        for node in body:
            self.count += 1
            if self.count > MOST_STATEMENTS:
                raise self.text.error(
                    node, "the kernel is too long", "let loops repeat", f"{MOST_STATEMENTS} statements"
                )
            match node:
                case ast.Assign(targets=[target]):
                    self._assign(target, self.expressions.value(node.value))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(target, self.expressions.value(value))
                case ast.AugAssign():
                    read = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
                    self._assign(node.target, self.expressions.value(read))
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.Expr():
                    self.expressions.value(node.value)
                case ast.For():
                    self._for(node)
                case ast.If():
                    if self._statements(node.body if self.expressions.known_truth(node.test) else node.orelse):
                        return True
                case ast.Return(value=None):
                    return True
                case ast.Return():
                    raise self.text.error(node, "a value is returned before the end", "let the last line return it")
                case ast.Assert():
                    pass
                case _:
                    raise self.text.error(
                        node, "this statement is not read", "use assignments, for over range, tl.store"
                    )
        return False

    def _rounds(self, node: ast.For) -> None:
        """The body of a loop, which goes round as often as its range says."""
        if node.orelse or self._statements(node.body):
            what = "a loop with else" if node.orelse else "a loop that is left before its end"
            raise self.text.error(node, what, "mask what is stored, or let the range end sooner")

    def _inlined(
        self, node: ast.Call, helper: ast.FunctionDef, given: list[TritonValue], named: KernelArguments
    ) -> TritonValue:
        """A call of another kernel of the file: its statements, with values for its arguments."""
        if self.depth >= MOST_NESTED:
            raise self.text.error(
                node, f"{helper.name} is called too deeply", "", f"{MOST_NESTED} calls in one another"
            )
        arguments = helper.args
        defaults = dict(zip([a.arg for a in arguments.args[::-1]], arguments.defaults[::-1], strict=False))
        bound = dict(zip([a.arg for a in arguments.args], given, strict=False)) | named
        lacking = [a.arg for a in arguments.args if a.arg not in bound and a.arg not in defaults]
        if lacking or len(given) > len(arguments.args) or set(named) - {a.arg for a in arguments.args}:
            what = (
                f"{helper.name} is called without {lacking[0]}" if lacking else f"{helper.name} takes other arguments"
            )
            raise self.text.error(node, what, f"it is written at line {helper.lineno}")
        saved = dict(self.names)
        self.names.clear()
        self.names.update(self.outside)
        self.names.update({name: self.expressions.value(value) for name, value in defaults.items()} | bound)
        self.depth += 1
        *body, last = helper.body
        self._statements(body if isinstance(last, ast.Return) else helper.body)
        made = self.expressions.value(last.value) if isinstance(last, ast.Return) and last.value else None
        self.depth -= 1
        self.names.clear()
        self.names.update(saved)
        return made

    def _assign(self, target: ast.expr, value: TritonValue) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for one, part in zip(target.elts, value, strict=True):
                self._assign(one, part)
        elif isinstance(target, ast.Name):
            self.names[target.id] = value
        else:
            raise self.text.error(target, "only names are assigned", "")

    def _for(self, node: ast.For) -> None:
        extent, start, step, trips = self._range(node)
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        assigned = {
            n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        before = {n: self.names[n] for n in sorted(assigned) if n in self.names and n != name}
        counter = self.emitter.counter(trips)
        place = KernelIndex(start.plus(Affine(0, ((counter, step),))))
        steps = self._steps(node, before, name, place, trips)
        # now for good: places move with the counter, tiles go round
        outer, self.emitter.body = self.emitter.body, []
        carried: list[tuple[str, Data, Data]] = []
        for each, value in before.items():
            if each in steps:
                assert isinstance(value, KernelIndex | int)
                index = self.expressions.index(node, value)
                self.names[each] = replace(index, base=index.base.plus(Affine(0, ((counter, steps[each]),))))
            elif isinstance(value, Data):
                inside = self.emitter.data(value.shape, value.dtype)
                self.names[each] = inside
                carried.append((each, value, inside))
        if name:
            self.names[name] = place
        self._rounds(node)
        body, self.emitter.body = self.emitter.body, outer
        rows: list[Carried] = []
        for each, first, inside in carried:
            last = self.names[each]
            if not isinstance(last, Data) or last.shape != inside.shape:
                raise self.text.error(
                    node, f"{each!r} changes its shape as the loop goes round", "start with its shape"
                )
            self.emitter.shapes[inside.id] = self.emitter.shapes[last.id]
            after = self.emitter.data(last.shape, last.dtype)
            rows.append(Carried(first.id, inside.id, last.id, after.id))
            self.names[each] = after
        for each, by in steps.items():
            index = self.expressions.index(node, before[each])
            self.names[each] = replace(index, base=index.base.plus(extent.times(by)))
        self.emitter.body.append(MeshLoop(counter, extent, tuple(rows), tuple(body), self.text.line_of(node)))

    def _range(self, node: ast.For) -> tuple[Affine, Affine, int, int]:
        call = node.iter
        if not isinstance(call, ast.Call) or dotted(call.func) not in ("range", "tl.range", "tl.static_range"):
            raise self.text.error(node, "a loop over what is no range", "for k in range(...)")
        ends = [self.expressions.number(call, self.expressions.value(one)) for one in call.args]
        if not 1 <= len(ends) <= 3 or any(end.shape or end.pointer for end in ends):
            raise self.text.error(call, "range takes one to three numbers", "")
        start = ends[0].base if len(ends) > 1 else Affine(0)
        step = self.expressions.whole(call, ends[2], "the step") if len(ends) > 2 else 1
        span = self.emitter.resolved(ends[min(1, len(ends) - 1)].base.plus(start, -1))
        if step < 1:
            raise self.text.error(call, f"a step of {step}", "count upwards")
        found = self.emitter.divided(span.plus(Affine(step - 1)), step)
        if found is None:
            raise self.text.error(
                call, f"how often the loop runs is not affine: steps of {step}", "let the step divide"
            )
        low, high = self.emitter.extremes(found[0])
        if low < 0 or high > MOST_INSTANCES or high < 1:
            raise self.text.error(
                call, f"the loop runs {low:,} to {high:,} times", "start at the lower end", "1 or more"
            )
        return found[0], start, step, high

    def _steps(
        self, node: ast.For, before: Mapping[str, TritonValue], name: str, place: KernelIndex, trips: int
    ) -> dict[str, int]:
        """How far the places that the body moves go in one round. The body is read once for that, and forgotten."""
        kept, saved, shapes = self.emitter.body, dict(self.names), dict(self.emitter.shapes)
        self.emitter.body = []
        marks: dict[str, tuple[int, KernelIndex]] = {}
        for each, value in before.items():
            if isinstance(value, KernelIndex) or (isinstance(value, int) and not isinstance(value, bool)):
                index, mark = self.expressions.index(node, value), self.emitter.counter(1)
                marks[each] = (mark, index)
                self.names[each] = replace(index, base=index.base.plus(Affine(0, ((mark, 1),))))
        if name:
            self.names[name] = place
        self._rounds(node)
        found: dict[str, int] = {}
        for each, (mark, index) in marks.items():
            end = self.expressions.index(node, self.names[each])
            moved = self.emitter.resolved(end.base.plus(index.base, -1).plus(Affine(0, ((mark, 1),)), -1))
            if mark not in dict(end.base.terms):
                continue  # a name that the body gives a value of its own in every round
            if moved.terms or end.strides != index.strides:
                raise self.text.error(node, f"{each!r} does not move by the same in every round", "compute it from k")
            found[each] = moved.const
        self.emitter.body = kept
        self.names.clear()
        self.names.update(saved)
        self.emitter.shapes.clear()
        self.emitter.shapes.update(shapes)
        return found


def _at(where: str) -> ast.AST:
    """A place of the text that is known by its line alone."""
    return ast.Pass(lineno=int(where.rpartition(":")[2]), col_offset=0)


def _loaded(node: ast.expr) -> ast.expr:
    assert isinstance(node, ast.Name)
    return ast.copy_location(ast.Name(node.id, ast.Load()), node)
