"""Conditions of a task's text: on counters they say which rounds run what, on values what a variable becomes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Sequence

from penstock.compiler.tasks.affine import Tests
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.task_expressions import TaskExpressions
from penstock.compiler.tasks.tiles import RUNTIME
from penstock.compiler.tasks.tree import Assign, Expr, Memory, Shuffle, Stmt, Var, When, parts_of
from penstock.compiler.tasks.values import Condition, ReadValue


class TaskConditions(TaskExpressions):
    """Reads `if`; and says what values are at one place of the text, where later ones may change what they are of."""

    @abstractmethod
    def _statements(self, body: Sequence[ast.stmt]) -> None: ...

    def _if(self, node: ast.If) -> None:
        test = self._settle(node.test, lambda e, n: e.value(n))
        if isinstance(test, bool | int):
            self._statements(node.body if test else node.orelse)
            return
        if isinstance(test, (*RUNTIME, Memory)):
            self._statements(list(self._choices(node, self._named(node, test))))
            return
        if not isinstance(test, Condition):
            raise self.error(node.test, f"the condition is {self.say(test)}", "compare it with something")
        self._when(test.tests, node.body)
        if node.orelse:
            for position, one in enumerate(test.tests):
                self._when((*test.tests[:position], one.opposite), node.orelse)

    def _when(self, tests: Tests, body: Sequence[ast.stmt]) -> None:
        before, self.out, outside = self.out, list[Stmt](), self.held
        self.held = (*self.held, *tests)
        self.depth += 1
        self._statements(body)
        self._leave()
        inside, self.out, self.held = tuple(self.out), before, outside
        if inside:
            self.out.append(When(tests, inside))

    def _leave(self) -> None:
        """Out of a loop or condition: what was known in it alone is not known any more."""
        self.depth -= 1
        for name in [name for name, depth in self.known_at.items() if depth > self.depth]:
            del self.known_at[name]
            self.names.pop(name, None)

    # -- conditions on values

    def _named(self, node: ast.If, test: ReadValue) -> ast.Name:
        """A name for what the condition is here: the sides may change what it is of."""
        value = self.runtime(node.test, test)
        if value.kind != TileKind("i1"):
            raise self.error(
                node.test, f"the condition is {self.say(value)}", "compare it: if x != 0, of a tile one element"
            )
        name = self._temporary()
        self.out.append(Assign(name, value))
        self.names[name] = Var(name, value.kind)
        return ast.copy_location(ast.Name(name, ast.Load()), node.test)

    def _choices(self, node: ast.If, test: ast.Name) -> Iterator[ast.stmt]:
        """Both sides, with each variable that they set as a choice between what it becomes and what it was."""
        for one in node.body:
            yield self._chosen_if(one, test, holds=True)
        for one in node.orelse:
            yield self._chosen_if(one, test, holds=False)

    def _chosen_if(self, one: ast.stmt, test: ast.Name, *, holds: bool) -> ast.stmt:
        match one:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return one
            case ast.If():
                body, orelse = (
                    [self._chosen_if(s, test, holds=holds) for s in side] for side in (one.body, one.orelse)
                )
                return ast.copy_location(ast.If(one.test, body, orelse), one)
            case ast.Assign(targets=[ast.Name() | ast.Subscript() as target], value=value):
                pass
            case ast.AugAssign(target=target):
                value = ast.copy_location(ast.BinOp(as_load(target), one.op, one.value), one)
            case _:
                raise self.error(
                    one, "what runs would depend on a value, which is not known before a run",
                    "an if on a value sets variables: give them another value, and put, store and loop outside of it",
                )  # fmt: skip
        base = target.value if isinstance(target, ast.Subscript) else target
        known = self.names.get(base.id) if isinstance(base, ast.Name) else None
        if isinstance(target, ast.Subscript) and isinstance(known, Memory) and known.is_tensor:
            raise self.error(
                one, f"whether {known.name} is stored would depend on a value", "choose the value, and store it "
                "outside of the if: B[i] = x if x > y else y",
            )  # fmt: skip
        if known is None and isinstance(target, ast.Name):
            return one  # of this side alone
        sides = (value, as_load(target)) if holds else (as_load(target), value)
        return ast.copy_location(ast.Assign([target], ast.copy_location(ast.IfExp(test, *sides), one)), one)

    # -- what values are here

    def rows_of(self, value: ReadValue) -> ReadValue:
        """A tile as a tuple of what stands along its first dim; other values as they are."""
        if not isinstance(value, RUNTIME) or not value.kind.shape:
            return value
        kind = TileKind(value.kind.dtype, value.kind.shape[1:])
        lanes = kind.lanes
        return tuple(Shuffle(value, tuple(range(n * lanes, (n + 1) * lanes)), kind) for n in range(value.kind.shape[0]))

    def settled(self, value: ReadValue) -> ReadValue:
        """Values of a tuple as they are now: variables that they are made of may change before they are used."""
        return self.settled_items(value) if isinstance(value, tuple) else value

    def settled_items(self, items: tuple[ReadValue, ...]) -> tuple[ReadValue, ...]:
        return tuple(self._kept(one) if isinstance(one, RUNTIME) else self.settled(one) for one in items)

    def _kept(self, value: Expr) -> Expr:
        if all(one.name[1:].isdecimal() for one in parts_of(value) if isinstance(one, Var)):
            return value  # of numbers, and names that are given once
        name = self._temporary()
        self.out.append(Assign(name, value))
        return Var(name, value.kind)


def as_load(node: ast.expr) -> ast.expr:
    """The target of an assignment, as what is read."""
    match node:
        case ast.Name():
            return ast.copy_location(ast.Name(node.id, ast.Load()), node)
        case ast.Subscript():
            return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
        case _:
            return node
