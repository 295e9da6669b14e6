"""Loops of a kernel: what is unrolled, what is one pipeline, what stays a loop around others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.compiler.hls_in.bindings import NameScope, Slot, StreamView, kind_of, unsupported, where
from penstock.compiler.hls_in.functions import COPIES
from penstock.compiler.hls_in.graph import KernelValue, LinearForm
from penstock.compiler.hls_in.loop_ends import LoopEnds
from penstock.compiler.hls_in.loops import LOCK, MOST_UNROLLED, NAMING, Head, head_of, start_of
from penstock.compiler.hls_in.parsing import shown
from penstock.compiler.hls_in.pragmas import Pragma
from penstock.compiler.hls_in.records import Again, CarriedVariable, Pipeline, Region, TurnSpan
from penstock.compiler.hls_in.storage import Counter
from penstock.compiler.hls_in.syntax import (
    LEFT,
    Tree,
    calls_in,
    declared_in,
    indexed_in,
    is_flag,
    loops_in,
    may_leave,
    names_in,
    statements_of,
    unlabelled,
    variable_of,
)  # fmt: skip


class Nests(LoopEnds):
    sunk: set[KernelValue]
    looked_at: set[int]
    """Loops of which it is known that they do not change their own variable."""

    @abstractmethod
    def statements(self, trees: list[Tree], pragmas: Iterable[Pragma] = ()) -> None: ...

    def _head(self, tree: Tree) -> Head:
        said = self.asked(tree[5], "loop_tripcount")
        often = (said.number(key, self.constants()) for key in ("max", "avg", "min")) if said is not None else ()
        most = next((most for most in often if most is not None), None)
        seen: dict[int, KernelValue] = {}

        def constant(part: Tree) -> int | None:
            node = seen[id(part)] = self.value(part)
            return int(node.value) if node.value is not None else None

        head = head_of(tree, constant, most, self._linear_of if self.items is not None else None)
        if head.open:
            head = replace(head, begin=self.value(start_of(tree[2], tree[1])[2]))
        if head.bound is not None:
            head = replace(head, end=seen[id(head.bound)])
        if head.span is not None:
            self.says("loops whose bounds follow from loops around them are counted turn by turn")
            self.beyond.append((where(tree[1]), f"a loop over {head.variable!r} whose bound follows from other loops"))
        elif head.told:
            note = "loops whose bounds data decide go round as often as LOOP_TRIPCOUNT says at most"
            self.says(note)
            if self.goes_on(head, self.graph.constant(head.first)) is not None:
                return head
            what = f"loop over {head.variable!r}" if head.variable.isidentifier() else "while loop"
            self.beyond.append((where(tree[1]), f"a {what} that data end"))
        return head

    def _linear_of(self, tree: Tree) -> LinearForm | None:
        return self.value(tree).linear

    def loop_of(self, tree: Tree, label: str) -> None:
        head = self._head(tree)
        if id(tree) not in self.looked_at:
            self.looked_at.add(id(tree))
            if (at := self.changed_in(tree[5], heads=False).get(head.variable)) is not None:
                hint = "count with a variable of its own, or put the part that is left out under a condition"
                raise unsupported(at, f"a loop that changes its own variable {head.variable!r}", hint)
        unroll = self.asked(tree[5], "unroll")
        factor = unroll.number("factor", self.constants()) if unroll is not None else None
        whole = self.items is None or (unroll is not None and factor is None) or (factor or 0) >= head.trip
        if whole or head.trip <= 1 or self._chooses_streams(tree):
            self._unrolled(tree, head)
            return
        self.settle()
        with self.in_a_loop(tree):
            item = self._loop(tree, label)
        assert self.items is not None
        self.items.append(item)
        self._left(head)

    def _unrolled(self, tree: Tree, head: Head) -> None:
        if head.trip > MOST_UNROLLED:
            raise unsupported(
                tree[1], f"unrolling {head.trip:,} iterations", "pipeline this loop, or unroll by a factor"
            )
        self.goes(tree, head)
        for turn in range(head.trip):
            at = self._from_begin(head, self.graph.constant(head.at(turn)))
            self.unless_left(lambda at=at: self._bound(head, at, lambda: self.statement(tree[5])))
        self._left(head)

    def _chooses_streams(self, tree: Tree) -> bool:
        """Whether a loop's counter chooses among streams: each is a port of its own, so such a loop is no loop, unless
        a pragma makes a pipeline of it, which chooses in every iteration."""
        asked = self.asked(tree[5], "pipeline")
        if asked is not None and "off" not in asked.options:
            return False
        variable = variable_of(tree)
        return any(
            variable in names_in(index) and isinstance(self.scope.find(name), StreamView)
            for name, index in indexed_in(tree[5])
        )

    def _left(self, head: Head) -> None:
        """A counter that was declared before its loop stands at the loop's end after it."""
        slot = self.scope.find(head.variable) if not head.declared else None
        if isinstance(slot, Slot):
            end = self._from_begin(head, self.graph.constant(head.at(head.trip)))
            end = self.stopped_at(head) or end
            slot.write(self.convert(end, slot.kind, slot.bits, slot.signed), self.path, self.graph)

    def _bound(self, head: Head, value: KernelValue, walk: Callable[[], object]) -> None:
        """Walk with the loop's variable at a value."""
        goes = self.goes_on(head, value)
        if goes is not None:
            with self.under(goes):
                self._walked(head, value, walk)
        else:
            self._walked(head, value, walk)

    def _walked(self, head: Head, value: KernelValue, walk: Callable[[], object]) -> None:
        self.scope = NameScope(self.scope, {head.variable: Slot(head.variable, "int", 32, value=value, path=self.path)})
        try:
            walk()
        finally:
            assert self.scope.around is not None
            self.scope = self.scope.around

    def loop_name(self, tree: Tree, label: str) -> str:
        return label or f"VITIS_LOOP_{tree[1][1]}_{self.loop_numbers.get(id(tree), 0)}"

    def _staying(self, body: Tree) -> list[Tree]:
        """Loops of a body that are not wholly unrolled, and None-like calls of functions with loops."""
        found: list[Tree] = []
        for loop in loops_in(body):
            unroll = self.asked(loop[5], "unroll")
            if (unroll is None or "factor" in unroll.options) and not self._chooses_streams(loop):
                found.append(loop)
        return found

    def _loop(self, tree: Tree, label: str) -> Region:
        """A loop that stays one: a pipeline with the loops that it can be flattened with, or a loop around others."""
        chain, names = [tree], [self.loop_name(tree, label)]
        while True:
            body = chain[-1][5]
            asked = self.asked(body, "pipeline")
            if self.asked(body, "dataflow"):
                return self._around(tree, names[0])
            if asked is not None and "off" not in asked.options:
                return self._pipeline(chain, names, asked)
            staying = self._staying(body)
            calls = [
                c for c in calls_in(body) if c in COPIES or (c in self.functions and self.has_loops(self.functions[c]))
            ]
            if not staying and not calls:
                return self._pipeline(chain, names, None)
            if len(staying) != 1 or calls or not self._flattens(chain, staying[0]):
                return self._around(tree, names[0])
            direct = [unlabelled(s) for s in statements_of(body)]
            inner = next((pair for pair in direct if pair[0] is staying[0]), None)
            if inner is None:
                return self._around(tree, names[0])
            chain.append(inner[0])
            names.append(self.loop_name(*inner))

    def _flattens(self, chain: list[Tree], inner: Tree) -> bool:
        """Whether a loop is one with those around it: its bounds do not change, and no iteration leaves it early."""
        outer = {variable_of(tree) for tree in chain}
        for part in statements_of(chain[-1][5]):  # what the loop around computes anew is no bound that stands still
            outer |= {name for name, _ in declared_in(part)} | set(self.changed_in(part, heads=False))
        outer.discard(variable_of(inner))
        if any(type_[-1] == LOCK for part in statements_of(chain[-1][5]) for _, type_ in declared_in(part)):
            return False  # it is taken in every iteration
        if may_leave(chain[-1][5]) or any(name.startswith(LEFT) for name in self.changed_in(inner[5])):
            return False
        if any(name in outer for part in (inner[2], inner[3]) for name in names_in(part)):
            return False
        unroll = self.asked(inner[5], "unroll")
        if unroll is None or "factor" not in unroll.options:
            return True
        head = self._head(inner)
        return head.trip % (unroll.number("factor", self.constants()) or 1) == 0

    def _around(self, tree: Tree, name: str) -> Again:
        head = self._head(tree)
        counter = Counter(name, head.trip)
        self.goes(tree, head, counter)
        dataflow = self.asked(tree[5], "dataflow")
        own = variable_of(tree)
        names = (name for name in self.changed_in(tree[5], heads=False) if name != own)
        assigned = tuple(name for name in names if isinstance(self.scope.find(name), Slot))

        flags = [self.scope.find(name) for name in assigned if is_flag(name, tree[5])]

        def walk() -> None:
            scaled = self._scaled(counter, head)
            for slot in flags:
                if isinstance(slot, Slot):
                    slot.value = self.graph.fresh("input", slot.kind, slot.bits, slot.signed)
            self.around.append((head, scaled))
            self._bound(head, scaled, lambda: self.block(tree[5]) if tree[5][0] == "block" else self.statement(tree[5]))
            self.around.pop()

        if dataflow:
            self.scope = NameScope(
                self.scope, {head.variable: Slot(head.variable, "int", 32, value=self._scaled(counter, head))}
            )
            body: list[Region] = [self._dataflow(name, tree[5], self.pragmas.of(tree[5]))]
            assert self.scope.around is not None
            self.scope = self.scope.around
        else:
            self.in_turns += 1
            body = self.region(walk)
            self.in_turns -= 1
        span = TurnSpan(head.span, abs(head.step)) if head.span is not None else None
        return Again(name, counter, body, where(tree[1]), dataflow is not None, span, assigned)

    def _scaled(self, counter: Counter, head: Head) -> KernelValue:
        if head.shift:
            by = self.graph.operate("mul", self.graph.counter(counter), self.graph.constant(abs(head.shift)), "int", 32)
            sign = "shl" if head.shift > 0 else "shr"
            return self.graph.operate(sign, self.graph.constant(head.first), by, "int", 32)
        return self._from_begin(head, self._linear(counter, head))

    def _from_begin(self, head: Head, moved: KernelValue) -> KernelValue:
        """A loop's variable, wherever it starts."""
        return moved if head.begin is None else self.graph.operate("add", head.begin, moved, "int", 32)

    def _linear(self, counter: Counter, head: Head) -> KernelValue:
        node = self.graph.operate("mul", self.graph.counter(counter), self.graph.constant(head.step), "int", 32)
        return self.graph.operate("add", node, self.graph.constant(head.first), "int", 32)

    def _pipeline(self, chain: list[Tree], names: list[str], asked: Pragma | None) -> Pipeline:
        graph, memories, items, path = self.graph, self.memories, self.items, self.path
        target = asked.number("ii", self.constants()) if asked is not None else None
        heads = [self._head(tree) for tree in chain]
        unroll = self.asked(chain[-1][5], "unroll")
        factor = (unroll.number("factor", self.constants()) or 1) if unroll is not None else 1
        if heads[-1].shift and factor > 1:
            hint = "unroll it wholly, or not at all"
            raise unsupported(chain[-1][1], f"unrolling a loop over {heads[-1].variable!r} by a factor", hint)
        trips = [head.trip for head in heads]
        trips[-1] = -(-trips[-1] // factor)
        counters = [Counter(name, trip) for name, trip in zip(names, trips, strict=True)]
        counters[-1].unrolled = factor
        for loop, head, counter in zip(chain, heads, counters, strict=True):
            self.goes(loop, head, counter, counter.unrolled)
        self.begin()
        self.items = None
        self.path = None
        for around, value in self.around:
            self.path = self.graph.both(self.path, self.goes_on(around, value))
        outside, self.sunk = self.sunk, set()
        self.apart = {}
        carried = self._carry(chain)
        self._level(chain, heads, counters, 0, factor)
        for slot, (phi, _) in carried.items():
            if slot.value is not phi:
                phi.follow = slot.value
        self.memories.close()
        made = Pipeline(
            "_".join(names), counters, self.graph, target or 1, asked is not None, where(chain[0][1]), chain[-1][1][1],
            sunk=self.sunk, directive=shown(asked.where) if asked is not None else "", apart=self.apart,
            flushes=asked is not None and asked.flushes,
            spans={c: TurnSpan(h.span, abs(h.step * factor) if c is counters[-1] else abs(h.step))
                   for c, h in zip(counters, heads, strict=True) if h.span is not None},
        )  # fmt: skip
        self.sunk = outside
        self.graph, self.memories, self.items, self.path = graph, memories, items, path
        for slot, (phi, before) in carried.items():
            slot.latest = None
            if slot.value is phi:
                slot.value = before
            else:
                slot.value = self.graph.fresh("input", slot.kind, slot.bits, slot.signed)
            if slot.value is not None:
                made.carried.append(CarriedVariable(before, phi, slot.value))
        return made

    def _carry(self, chain: list[Tree]) -> dict[Slot, tuple[KernelValue, KernelValue | None]]:
        """Variables from outside that the nest assigns: each becomes what the iteration before has left."""
        carried: dict[Slot, tuple[KernelValue, KernelValue | None]] = {}
        variables = {variable_of(tree) for tree in chain}
        for name in self.changed_in(chain[0]):
            slot = self.scope.find(name)
            if isinstance(slot, Slot) and name not in variables and slot not in carried:
                phi = self.graph.fresh("phi", slot.kind, slot.bits, slot.signed)
                carried[slot] = phi, slot.value
                slot.value, slot.path, slot.latest = phi, None, None
        return carried

    def _level(self, chain: list[Tree], heads: list[Head], counters: list[Counter], depth: int, factor: int) -> None:
        tree, head = chain[depth], heads[depth]
        last = depth == len(chain) - 1
        value = self._scaled(counters[depth], head)
        if last and factor == 1:
            self._bound(head, value, lambda: self.statement(tree[5]))
            return
        if last:
            for lane in range(factor):
                node = self.graph.operate(
                    "mul", self.graph.counter(counters[depth]), self.graph.constant(factor * head.step), "int", 32
                )
                node = self.graph.operate("add", node, self.graph.constant(head.first + lane * head.step), "int", 32)
                node = self._from_begin(head, node)
                with self.under(self._turns(counters[depth], -(-(head.trip - lane) // factor))):
                    self._bound(head, node, lambda: self.statement(tree[5]))
            return

        def walk() -> None:
            parts = statements_of(tree[5])
            at = next(i for i, part in enumerate(parts) if unlabelled(part)[0] is chain[depth + 1])
            changed = {name for part in (chain[depth + 1], *parts[at + 1 :]) for name in self.changed_in(part)}
            pragmas = self.pragmas.of(tree[5])
            self._sunk(parts[:at], counters[depth + 1 :], first=True, pragmas=pragmas, changed=changed)
            self._level(chain, heads, counters, depth + 1, factor)
            self._left(heads[depth + 1])
            self._sunk(parts[at + 1 :], counters[depth + 1 :], first=False)

        self._bound(head, value, lambda: self._in_block(tree[5], walk))

    def _turns(self, counter: Counter, count: int) -> KernelValue | None:
        """The first iterations of a loop, so many; None for all of them."""
        if count >= counter.trip:
            return None
        return self.graph.compare("<", self.graph.counter(counter), self.graph.constant(count))

    def _in_block(self, block: Tree, walk: Callable[[], object]) -> None:
        self.scope = NameScope(self.scope)
        self.directives(self.pragmas.of(block))
        try:
            walk()
        finally:
            assert self.scope.around is not None
            self.scope = self.scope.around

    def _sunk(
        self, statements: list[Tree], inner: list[Counter], first: bool, pragmas: Iterable[Pragma] = (),
        changed: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Statements beside an inner loop: they happen in its first or last iteration alone. `changed` are variables
        that the inner loop assigns, or what follows it."""
        condition: KernelValue | None = None
        for counter in inner:
            at = self.graph.constant(0 if first else counter.trip - 1)
            condition = self.graph.both(condition, self.graph.compare("==", self.graph.counter(counter), at))
        if condition is not None and statements:
            self.sunk.add(condition)
        for position, statement in enumerate(statements):
            for name, type_ in declared_in(statement) if first else ():
                kind = kind_of(type_)
                if kind is not None:  # lives through all iterations of the inner loop
                    slot = self.scope.names[name] = Slot(name, *kind)
                    slot.value = phi = self.graph.fresh("phi", *kind)
                    self.memories.phis[slot] = phi
            with self.under(condition):
                self.statements([statement])
            if first:
                own = {*(name for name, _ in declared_in(statement)), *self.changed_in(statement)}
                later = {name for part in statements[position + 1 :] for name in self.changed_in(part)}
                self._stand_still(own - {*changed} - later)
        for p in pragmas:
            if p.kind in NAMING:
                with self.mistakes.noted():
                    self.apply(p)

    def _stand_still(self, names: Iterable[str]) -> None:
        """What counters of outer loops alone decide is the same in every iteration of the inner one, and known there:
        row = i * 64 ahead of a loop over row + j."""
        for name in names:
            slot = self.scope.find(name)
            value = slot.value if isinstance(slot, Slot) else None
            if isinstance(slot, Slot) and value is not None and value.op == "select" and value.args[0] in self.sunk:
                known = value.args[1]
                if known.linear is not None and value.kind == known.kind == "int":
                    slot.value, slot.latest = known, None
