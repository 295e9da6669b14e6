"""What stands around a kernel: the file's constants and grid, values for its arguments. Host code is passed over."""

from __future__ import annotations

import ast
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.mesh.triton.calls import KernelExpressions
from penstock.compiler.mesh.triton.emit import Emitter
from penstock.compiler.mesh.triton.expressions import DTYPES, KernelArguments
from penstock.compiler.mesh.triton.values import KernelIndex, Name, TritonValue
from penstock.compiler.tasks.affine import Affine
from penstock.compiler.tasks.source import ProgramText, dotted, is_jit

MOST_STATEMENTS = 20_000
MOST_INSTANCES = 1 << 24
MOST_NESTED = 8
EXPLORED = re.compile("block|tile", re.IGNORECASE)
_SETTINGS = ("num_stages", "num_warps", "num_ctas", "waves_per_eu")
"""What only Triton's own compiler asks for."""
_MODULES: dict[str, TritonValue] = {
    "tl": Name("tl"), "triton": Name("triton"), "math": Name("math"), "min": Name("min"), "max": Name("max"),
    "float": Name("float"), "range": Name("range"), "True": True, "False": False,
}  # fmt: skip


@dataclass(frozen=True)
class KernelFile:
    """A file of kernels, one of which is meant."""

    text: ProgramText
    tree: ast.Module
    kernel: ast.FunctionDef
    helpers: Mapping[str, ast.FunctionDef]
    """Kernels of the file that this one may call."""
    blocks: tuple[str, ...]
    """Its constexpr arguments that nothing gives a value: what may be explored."""


def is_constexpr(arg: ast.arg) -> bool:
    """`tl.constexpr`, or `"tl.constexpr"` as text."""
    match arg.annotation:
        case ast.Constant(value=str() as said):
            return said.endswith("constexpr")
        case _:
            return dotted(arg.annotation).endswith("constexpr")


class KernelSurroundings(ABC):
    def __init__(self, file: KernelFile, given: Mapping[str, int | float | str]) -> None:
        self.file, self.text, self.emitter = file, file.text, Emitter()
        self.given = dict(given)
        self.count = 0
        self.names: dict[str, TritonValue] = dict(_MODULES)
        self.expressions = KernelExpressions(self.text, self.emitter, self.names)
        self.tensors: dict[str, str] = {}
        self.outside: dict[str, TritonValue] = {}
        """What names mean beside the kernel."""
        self.unread: dict[str, PenstockError] = {}
        """Constants of the file that could not be worked out, and why: host code, mostly."""
        self.depth = 0

    def _constants(self) -> ast.expr | None:
        """The file's constants, and its grid. All else beside kernels is host code, which nothing here needs."""
        grid: ast.expr | None = None
        for node in self.file.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="grid")]):
                    grid = node.value
                case ast.Assign(targets=targets):
                    self._constant(targets, node.value)
                case ast.FunctionDef(name="grid", body=[*_, ast.Return(value=ast.expr() as value)]):
                    grid = value
                case _:
                    pass
        return grid or self._launch()

    def _launch(self) -> ast.expr | None:
        """The grid of a launch somewhere in host code, `kernel[grid](...)`, if it is written out there."""
        hosts = [node for node in self.file.tree.body if not (isinstance(node, ast.FunctionDef) and is_jit(node))]
        named: dict[str, ast.expr] = {}
        found: ast.expr | None = None
        for node in (one for host in hosts for one in ast.walk(host)):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() | ast.Tuple() as value):
                    named[name] = value
                case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.expr() as value)]):
                    named[name] = value
                case ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=launch)) if (
                    name == self.file.kernel.name
                ):
                    found = launch
                case _:
                    pass
        return named.get(found.id) if isinstance(found, ast.Name) else found

    def _constant(self, targets: list[ast.expr], node: ast.expr) -> None:
        """Constants that can be worked out."""
        for target in targets:
            pairs = (
                zip(target.elts, node.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(node, ast.Tuple)
                else [(target, node)]
            )
            for one, value in pairs:
                if isinstance(one, ast.Name) and one.id not in self.given:
                    try:
                        self.names[one.id] = self.expressions.value(value)
                    except PenstockError as error:
                        self.unread[one.id] = error

    def _arguments(self) -> None:
        arguments = self.file.kernel.args
        defaults = dict(zip([a.arg for a in arguments.args[::-1]], arguments.defaults[::-1], strict=False))
        unknown = set(self.given) - {a.arg for a in arguments.args} - self._constant_names() - {"grid"}
        if unknown:
            name = min(unknown)
            hint = nearest(name, [a.arg for a in arguments.args], "an argument or a constant of the file")
            raise self.text.error(self.file.kernel, f"the kernel has no argument {name!r}", hint)
        for arg in arguments.args:
            asked = self.given.get(arg.arg, self.names.get(arg.arg))
            if asked in DTYPES or (arg.arg not in self.names and self._is_pointer(arg, defaults)):
                self.tensors[arg.arg] = str(asked) if asked in DTYPES else "float16"
                self.names[arg.arg] = KernelIndex(Affine(0), (), (), arg.arg)
            elif arg.arg not in self.names:
                if arg.arg in self.unread:
                    raise self.unread[arg.arg]
                if arg.arg in _SETTINGS:
                    self.names[arg.arg] = 1
                    continue
                if arg.arg not in defaults:
                    raise self.text.error(
                        arg, f"{arg.arg!r} has no value", f"write --set {arg.arg}=..., or in the file"
                    )
                self.names[arg.arg] = self.expressions.value(defaults[arg.arg])

    def _constant_names(self) -> set[str]:
        return {
            n.id
            for node in self.file.tree.body
            if isinstance(node, ast.Assign)
            for t in node.targets
            for n in ast.walk(t)
            if isinstance(n, ast.Name)
        }

    def _is_pointer(self, arg: ast.arg, defaults: Mapping[str, ast.expr]) -> bool:
        return not is_constexpr(arg) and arg.arg not in defaults and "stride" not in arg.arg

    def _grid(self, node: ast.expr | None) -> tuple[int, ...]:
        asked = self.given.get("grid")
        if asked is not None:
            sizes = str(asked).split("x")
            if not all(size.isdecimal() and len(size) < 20 for size in sizes):
                raise self.text.error(
                    self.file.kernel, f"a grid of {str(asked)[:40]}", "write --set grid=64 or grid=8x4"
                )
            return self._extents(self.file.kernel, tuple(map(int, sizes)))
        if node is None:
            raise self.text.error(
                self.file.kernel, "nothing says how many instances there are",
                "write grid = (...,) in the file, or --set grid=8x4",
            )  # fmt: skip
        if isinstance(node, ast.Lambda):
            for arg in node.args.args:
                self.names[arg.arg] = Name("meta")
            node = node.body
        launch: ast.expr = _Meta().visit(node)
        value = self.expressions.value(launch)
        sizes = value if isinstance(value, tuple) else (value,)
        return self._extents(launch, tuple(self.expressions.whole(launch, size, "the grid") for size in sizes))

    def _extents(self, launch: ast.AST, extents: tuple[int, ...]) -> tuple[int, ...]:
        if not 1 <= len(extents) <= 3 or min(extents) < 1 or math.prod(extents) > MOST_INSTANCES:
            raise self.text.error(launch, f"a grid of {extents}", "", f"1 to 3 dims, 1 to {MOST_INSTANCES} instances")
        return extents

    @abstractmethod
    def _inlined(
        self, node: ast.Call, helper: ast.FunctionDef, given: list[TritonValue], named: KernelArguments
    ) -> TritonValue:
        """What a call of a helper comes to: its body is read where it is called."""


class _Meta(ast.NodeTransformer):
    """`meta["BLOCK"]` in a grid is the argument of that name."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str() as name)):
                return ast.copy_location(ast.Name(name, ast.Load()), node)
            case _:
                return self.generic_visit(node)
