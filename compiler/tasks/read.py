"""Reads a file as a task program: its constants, its tensors, its streams and its tasks. Bodies are left for later."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from math import prod

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.tasks.blocks import CalledBlocks
from penstock.compiler.tasks.expressions import Expressions
from penstock.compiler.tasks.injections import Injections, named_task
from penstock.compiler.tasks.kinds import GridLayout, TileKind
from penstock.compiler.tasks.schedules import Bundle, Chain, GridOfPlaces, MappingLimits, MappingStep
from penstock.compiler.tasks.source import CODE, MODULE, ProgramText
from penstock.compiler.tasks.values import (
    Builtin,
    OwnFunction,
    Placed,
    ReadValue,
    StreamArray,
    StreamKind,
    TaskDef,
    TaskProgram,
    TensorArgument,
    words,
)
from penstock.compiler.tasks.whole_tensors import WholeTensors

MOST_INSTANCES = 1 << 16
MOST_CHANNELS = 1 << 18
MOST_PLACES = 1 << 10
_MOST_ELEMENTS = 1 << 28
_LAYER = re.compile(r"\w+(\.\w+){0,40}")


def read_program(source: ProgramText, name: str = "", options: Mapping[str, str] | None = None) -> TaskProgram:
    """The program of that name, or the only one. `options` are values for its constants and arguments."""
    return _Reader(source, dict(options or {})).program(name)


class _Reader:
    def __init__(self, source: ProgramText, options: dict[str, str]) -> None:
        self.source, self.options, self.used = source, options, set[str]()
        self.names: dict[str, ReadValue] = words()
        self.expressions = Expressions(source, self.names, {})
        self.blocks = CalledBlocks(source, self.expressions)
        self.whole_tensors = WholeTensors(source, self.expressions)

    def program(self, wanted: str) -> TaskProgram:
        programs: dict[str, ast.FunctionDef] = {}
        for node in self.source.parse().body:
            match node:
                case ast.ImportFrom() | ast.Import():
                    self._import(node)
                case ast.Assign() | ast.AnnAssign():
                    self._constants(node)
                case ast.FunctionDef() if self._decorated(node, "program") is not None:
                    programs[node.name] = node
                case ast.FunctionDef() if not node.decorator_list:
                    self.names[node.name] = OwnFunction(node)
                case ast.FunctionDef() if self.blocks.take(node):
                    pass
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.If() if _is_main(node):
                    pass  # what runs the file as a script
                case _:
                    raise self.source.error(
                        node, f"{type(node).__name__} has no place in a task program",
                        "constants, functions and one @program may stand here",
                    )  # fmt: skip
        if not programs:
            raise PenstockError(
                code=CODE, what="the file has no program", where=self.source.name,
                hint="write @program above the function that declares streams and tasks",
            )  # fmt: skip
        if not wanted and len(programs) > 1:
            raise PenstockError(
                code=CODE, what=f"the file has {len(programs)} programs", where=self.source.name,
                limit=", ".join(programs), hint=f"name one: {self.source.name}:{next(iter(programs))}",
            )  # fmt: skip
        if wanted and wanted not in programs:
            raise PenstockError(
                code=CODE, what=f"there is no program {wanted!r}", where=self.source.name,
                limit=", ".join(programs), hint=nearest(wanted, programs, "name one of these"),
            )  # fmt: skip
        found = self._read(programs[wanted or next(iter(programs))])
        if unknown := sorted(set(self.options) - self.used):
            raise PenstockError(
                code=CODE, what=f"the program has no constant {unknown[0]!r}", where=self.source.name,
                limit="options set whole numbers, numbers and types that the file names",
                hint=nearest(unknown[0], self.names, "correct its name"),
            )  # fmt: skip
        return found

    # -- outside the program

    def _import(self, node: ast.ImportFrom | ast.Import) -> None:
        if isinstance(node, ast.ImportFrom) and node.module == MODULE:
            for alias in node.names:
                if alias.name != "*" and alias.name not in words():
                    raise self.source.error(
                        node, f"the language has no {alias.name!r}", nearest(alias.name, words(), f"see {MODULE}")
                    )
                if alias.asname:
                    self.names[alias.asname] = self.names[alias.name]
            return
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return
        raise self.source.error(
            node, "a task program imports nothing else", f"from {MODULE} import task, program, Stream, ...",
            "it is read, not executed",
        )  # fmt: skip

    def _constants(self, node: ast.Assign | ast.AnnAssign) -> list[str]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) != 1 or node.value is None:
            raise self.source.error(node, "give one constant, or several of a tuple, at a time")
        found = self.expressions.value(node.value)
        target = targets[0]
        if isinstance(target, ast.Tuple):
            if not isinstance(found, tuple) or len(found) != len(target.elts):
                raise self.source.error(node, "as many names as values must stand here")
            pairs = list(zip(target.elts, found, strict=True))
        else:
            pairs = [(target, found)]
        for place, value in pairs:
            if not isinstance(place, ast.Name):
                raise self.source.error(place, "a constant has a plain name")
            self.names[place.id] = self._option(place.id, value)
        return [place.id for place, _ in pairs if isinstance(place, ast.Name)]

    def _option(self, name: str, value: ReadValue) -> ReadValue:
        if name not in self.options:
            return value
        self.used.add(name)
        text = self.options[name]
        try:
            found = ast.literal_eval(text) if len(text) < 200 else None
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            found = None
        if isinstance(value, TileKind):
            found = words().get(text)
        if type(found) is not type(value):
            raise PenstockError(
                code=CODE, what=f"{name} cannot be {text[:60]!r}", where=self.source.name,
                limit=f"it is {value!r} in the file",
                hint="give a value of the same type",
            )  # fmt: skip
        return found

    # -- the program

    def _read(self, node: ast.FunctionDef) -> TaskProgram:
        self._plain_arguments(node)
        tensors: dict[str, TensorArgument] = {}
        arguments = node.args.args
        first = len(arguments) - len(node.args.defaults)
        for position, one in enumerate(arguments):
            if position >= first:
                self.names[one.arg] = self._option(
                    one.arg, self.expressions.value(node.args.defaults[position - first])
                )
                continue
            kind = self.expressions.value(one.annotation) if one.annotation else None
            if not isinstance(kind, TileKind) or not kind.shape:
                raise self.source.error(one, f"{one.arg} needs a type with a shape", f"write {one.arg}: int8[16, 16]")
            if prod(kind.shape) > _MOST_ELEMENTS:
                raise self.source.error(one, f"{one.arg} has too many elements", limit=f"at most {_MOST_ELEMENTS}")
            tensors[one.arg] = self.names[one.arg] = TensorArgument(one.arg, kind, one)
        streams: dict[str, StreamArray] = {}
        tasks: list[TaskDef] = []
        mapping = _Mapping(self.source, self.expressions, tasks)
        injections = Injections(self.source, self.expressions, tasks)
        for inner in self._written_out(node.body):
            match inner:
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.Assign() | ast.AnnAssign():
                    for name in self._constants(inner):
                        found = self.names[name]
                        if isinstance(found, StreamKind):
                            made = StreamArray(name, found.kind, found.depth, found.dims, inner)
                            self.names[name] = streams[name] = made
                case ast.FunctionDef() if (decorator := self._decorated(inner, "task")) is not None:
                    tasks.append(self._task(inner, decorator, tensors))
                case ast.Expr(value=ast.Call() as call) if mapping.says(call) or injections.says(call):
                    pass
                case ast.FunctionDef() if not inner.decorator_list:
                    self.names[inner.name] = OwnFunction(inner)
                case _:
                    raise self.source.error(
                        inner, f"{type(inner).__name__} has no place in a program",
                        "constants, streams, functions and tasks may stand here",
                    )  # fmt: skip
        self._check_sizes(node, streams, tasks)
        schedule, limits = tuple(mapping.schedule), mapping.limits
        return TaskProgram(
            node.name, tensors, streams, tuple(tasks), dict(self.names), node, schedule, limits,
            tuple(injections.found), mapping.places, self._implemented(node),
        )  # fmt: skip

    def _written_out(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        """A program's statements, calls that stand for streams and tasks as these."""
        for one in body:
            inside: list[ast.stmt] | None = None
            if isinstance(one, ast.Expr) and isinstance(call := one.value, ast.Call):
                inside = self.blocks.statements(call) or self.whole_tensors.statements(call)
            yield from [one] if inside is None else inside

    def _implemented(self, node: ast.FunctionDef) -> tuple[str, ...]:
        """The layers that `@implements("fc1", ...)` names."""
        decorator = self._decorated(node, "implements")
        if decorator is None:
            return ()
        called = decorator if isinstance(decorator, ast.Call) and not decorator.keywords else None
        found = [self.expressions.value(one) for one in called.args] if called else []
        names = tuple(one for one in found if isinstance(one, str) and _LAYER.fullmatch(one))
        if not names or len(names) < len(found) or len(set(names)) < len(names):
            raise self.source.error(
                decorator, "implements takes the names of layers, each once", 'write @implements("fc1")',
                "names as the model has them, of modules within modules with points: blocks.0.mlp",
            )  # fmt: skip
        return names

    def _check_sizes(self, node: ast.AST, streams: Mapping[str, StreamArray], tasks: list[TaskDef]) -> None:
        if not tasks:
            raise self.source.error(node, "the program has no tasks", "write @task above the functions that are to run")
        if (count := sum(prod(task.grid) for task in tasks)) > MOST_INSTANCES:
            raise self.source.error(node, f"{count} instances of tasks", limit=f"at most {MOST_INSTANCES}")
        if (count := sum(prod(one.dims) for one in streams.values())) > MOST_CHANNELS:
            raise self.source.error(node, f"{count} channels", limit=f"at most {MOST_CHANNELS}")
        named: dict[str, TaskDef] = {}
        for task in tasks:
            if task.name in named:
                raise self.source.error(
                    task.node, f"there is a task {task.name!r} already", "write a task of another name"
                )
            named[task.name] = task

    def _task(self, node: ast.FunctionDef, decorator: ast.expr, tensors: Mapping[str, TensorArgument]) -> TaskDef:
        self._plain_arguments(node)
        grid: tuple[int, ...] = ()
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg != "grid":
                    raise self.source.error(decorator, f"a task has no {keyword.arg!r}", "grid=(P, Q) says how many")
                grid = self.expressions.numbers(keyword.value, "a grid")
            if decorator.args:
                raise self.source.error(decorator, "write grid=(P, Q)")
        if node.args.defaults:
            raise self.source.error(node, "a task's arguments have no defaults")
        places: list[str] = []
        layouts: dict[str, GridLayout] = {}
        for one in node.args.args:
            if one.annotation is None:
                places.append(one.arg)
                continue
            layouts[one.arg] = self._layout(one, grid, tensors)
        if len(places) != len(grid):
            raise self.source.error(
                node, f"{len(places)} names for the place in a grid of {len(grid)} axes",
                "the first arguments, without a type, are the instance's place", f"the grid is {grid}",
            )  # fmt: skip
        return TaskDef(node.name, grid, tuple(places), layouts, node, self.source.line_of(node))

    def _layout(self, one: ast.arg, grid: tuple[int, ...], tensors: Mapping[str, TensorArgument]) -> GridLayout:
        if one.arg not in tensors:
            raise self.source.error(
                one,
                f"the program has no tensor {one.arg!r}",
                nearest(one.arg, tensors, "tensors are the program's arguments"),
            )
        assert one.annotation is not None
        found, tensor = self.expressions.value(one.annotation), tensors[one.arg]
        if isinstance(found, Placed):
            if found.kind != tensor.kind:
                raise self.source.error(one, f"{one.arg} is {tensor.kind} in the program, not {found.kind}")
            found = found.layout
        if isinstance(found, TileKind) and found == tensor.kind:
            found = GridLayout((None,) * len(tensor.kind.shape))
        if not isinstance(found, GridLayout):
            raise self.source.error(one, f"{one.arg} needs a layout", f'write {one.arg}: {tensor.kind} @ Layout("S0R")')
        if len(found.axes) != len(tensor.kind.shape):
            raise self.source.error(one, f"the layout {found} is of {len(found.axes)} dims, {tensor.kind} has others")
        for dim, (axis, size) in enumerate(zip(found.axes, tensor.kind.shape, strict=True)):
            if axis is None:
                continue
            if axis >= len(grid):
                raise self.source.error(
                    one,
                    f"the layout {found} cuts along axis {axis}",
                    limit=f"the task's grid {grid} has {len(grid)} axes",
                )
            if size % grid[axis]:
                raise self.source.error(
                    one, f"dim {dim} of {tensor.kind} cannot be cut in {grid[axis]} equal parts",
                    "choose a grid that divides it, or replicate the tensor and index it",
                )  # fmt: skip
        return found

    def _plain_arguments(self, node: ast.FunctionDef) -> None:
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
            raise self.source.error(node, "plain arguments only", "leave out *, ** and /")
        for position, one in enumerate(args.args):
            if one.arg in [before.arg for before in args.args[:position]]:
                raise self.source.error(one, f"there is an argument {one.arg!r} already", "give it a name of its own")

    def _decorated(self, node: ast.FunctionDef, word: str) -> ast.expr | None:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(called, ast.Name) and self.names.get(called.id) == Builtin(word):
                return decorator
        return None


class _Mapping:
    """`bundle`, `chain` and `fit` after the tasks: how instances share elements, or what a search fits them into."""

    def __init__(self, source: ProgramText, expressions: Expressions, tasks: list[TaskDef]) -> None:
        self.source, self.expressions, self.tasks = source, expressions, tasks
        self.schedule: list[MappingStep] = []
        self.limits: MappingLimits | None = None
        self.places: GridOfPlaces | None = None

    def says(self, call: ast.Call) -> bool:
        """Whether a line is such a call, which is noted."""
        word = call.func.id if isinstance(call.func, ast.Name) else ""
        if self.expressions.names.get(word) != Builtin(word):
            return False
        if word == "bundle":
            names, numbers = call.args[:1], call.args[1:]
            given = self._numbers(call, ("inside",), least=0)
            if len(names) != 1 or len(numbers) > 1:
                raise self.source.error(call, "bundle takes a task and how many", "write bundle(worker, 4)")
            count = self.expressions.number(numbers[0], "how many share an element") if numbers else 0
            if numbers and count < 2:
                raise self.source.error(call, f"{count} instances share nothing", "give 2 or more, or none for all")
            self.schedule.append(Bundle(self._task(names[0]), count, given.get("inside", 0)))
        elif word == "chain":
            if len(call.args) < 2 or call.keywords:
                raise self.source.error(call, "chain takes tasks", "write chain(load, work)")
            first = self._task(call.args[0])
            for one in call.args[1:]:
                second = self._task(one)
                self.schedule.append(Chain(first, second))
                first = f"{first}_{second}"
        elif word == "fit":
            given = self._numbers(call, ("elements", "ports", "memory_bits"), least=1)
            if call.args or not given or self.limits is not None:
                raise self.source.error(call, "fit takes limits, once", "write fit(elements=8, ports=4)")
            self.limits = MappingLimits(**given)
        elif word == "place_on":
            self.places = self._grid(call)
        else:
            return False
        if self.limits is not None and self.schedule:
            raise self.source.error(
                call, "a schedule by hand and limits for a search", "leave out fit(...), or the bundles and chains"
            )
        return True

    def _grid(self, call: ast.Call) -> GridOfPlaces:
        """`place_on(rows=4, columns=6)`, and what its links can do."""
        alone = [one for one in call.keywords if one.arg == "neighbours"]
        flags = [self.expressions.value(one.value) for one in alone]
        given = self._numbers(
            ast.copy_location(ast.Call(call.func, call.args, [one for one in call.keywords if one not in alone]), call),
            ("rows", "columns", "links"), least=1,
        )  # fmt: skip
        whole = {"rows", "columns"} <= set(given) and all(isinstance(flag, bool) for flag in flags)
        if call.args or not whole or self.places:
            raise self.source.error(
                call, "place_on takes a grid, once", "write place_on(rows=4, columns=6)",
                "links= says how many streams a link carries each way, neighbours=True that none may lead further",
            )  # fmt: skip
        if given["rows"] * given["columns"] > MOST_PLACES:
            raise self.source.error(call, "the grid is too large", limit=f"at most {MOST_PLACES} places")
        return GridOfPlaces(**given, neighbours=bool(flags and flags[0]))

    def _numbers(self, call: ast.Call, known: tuple[str, ...], least: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for one in call.keywords:
            if one.arg not in known:
                raise self.source.error(call, f"{one.arg} is no argument of it", " and ".join(known) + " are")
            found[one.arg] = self.expressions.number(one.value, one.arg)
            if found[one.arg] < least:
                raise self.source.error(one.value, f"{one.arg} is {found[one.arg]}", limit=f"at least {least}")
        return found

    def _task(self, node: ast.expr) -> str:
        return named_task(self.source, self.tasks, node)


def _is_main(node: ast.If) -> bool:
    test = node.test
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
