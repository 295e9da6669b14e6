"""`break`, `while`, `do` and incomplete heads as whole `for` loops, while syntax is read.

A flag says that a loop was left, and the turns that remain do nothing. What counts up to a bound is a `for` like any
other; of every other `while` a pragma LOOP_TRIPCOUNT has to say how often it goes round.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compiler.hls_in.parse_jumps import SyntaxPart, listed, skips, without_continue
from penstock.compiler.hls_in.syntax import LEFT, UNBOUNDED, assigned_in, loops_in, names_in

_BOOL = ["int", 1, False]
_INT = ["int", 32, True]
_COMPARED = ("<", "<=", ">", ">=", "!=")


def without_jumps(body: SyntaxPart) -> tuple[SyntaxPart, list[SyntaxPart]]:
    """The body of a loop without `continue` and `break` of that loop, and what has to stand before the loop."""
    place = next(_breaks(body), None)
    if place is None:
        return without_continue(body), []
    if next(loops_in(body), None) is not None:
        return without_continue(_marked(body, None)), []
    flag = ["name", place, f"{LEFT}{place[1]}:{place[2]}"]
    inside = listed(without_continue(_marked(body, flag)))
    begun = ["declare", place, flag[2], _BOOL, ["literal", place, 0, _BOOL], False, False]
    going = ["if", place, ["unary", place, "!", flag, _BOOL], ["block", place, _end(body), inside], None]
    return ["block", body[1], _end(body), [going]], [["group", place, [begun]]]


def as_for(
    place: SyntaxPart, condition: SyntaxPart | None, body: SyntaxPart, last: bool = False
) -> tuple[SyntaxPart, list[SyntaxPart]]:
    """A `while`, or with `last` a `do`, as a loop, and what has to stand before it. No condition is a true one."""
    counted = _counted(place, condition, body) if condition is not None and not last else None
    if counted is not None:
        start, condition, step, body = counted
        body, before = without_jumps(body)
        return ["for", place, start, condition, step, body, _end(body)], before
    if last and skips(body):
        return ["bad", place, "continue statement in a do loop"], []
    inside = listed(body)
    if condition is not None:
        ended = ["if", place, ["unary", place, "!", condition, _BOOL], ["break", place], None]
        inside = [*inside, ended] if last else [ended, *inside]
    body, before = without_jumps(["block", body[1], _end(body), inside])
    turn = ["name", place, f"turn {place[1]}:{place[2]}"]
    start = ["group", place, [["declare", place, turn[2], _INT, ["literal", place, 0, _INT], False, False]]]
    bound = ["binary", place, "<", turn, [UNBOUNDED, place], _BOOL]
    return ["for", place, start, bound, ["unary", place, "++", turn, _INT], body, _end(body)], before


def begun_before(place: SyntaxPart, step: SyntaxPart) -> SyntaxPart:
    """The start of a loop whose variable has been set before it: it goes on from where that stands."""
    variable = next(names_in(step), "")
    return _set(place, ["name", place, variable], ["name", place, variable])


def _counted(
    place: SyntaxPart, condition: SyntaxPart, body: SyntaxPart
) -> tuple[SyntaxPart, SyntaxPart, SyntaxPart, SyntaxPart] | None:
    """Start, condition, step and the rest of the body of a `while` whose variable steps towards a bound."""
    bare = _bare(condition)
    if bare[0] == "binary" and bare[2] in (">", "!=") and _bare(bare[4])[0] == "literal" and not _bare(bare[4])[2]:
        bare = _bare(bare[3])  # n-- > 0
    changed = assigned_in(body)
    if bare[0] == "unary" and bare[2] in ("--", "p--") and _bare(bare[3])[0] == "name":
        variable = _bare(bare[3])
        if variable[2] in changed:
            return None
        one, zero = ["literal", place, 1, _INT], ["literal", place, 0, _INT]
        start = _set(place, variable, ["binary", place, "-", variable, one, _INT])
        bound = ["binary", place, ">" if bare[2] == "--" else ">=", variable, zero, _BOOL]
        return start, bound, ["unary", place, "--", variable, _INT], body
    if bare[0] != "binary" or bare[2] not in _COMPARED or skips(body):
        return None
    *rest, step = [None, *listed(body)]
    if step is None or step[0] != "expression" or not _steps(step[2]):
        return None
    names = list(names_in(bare))
    moved = set(names) & set(changed)
    own = set(assigned_in(step))
    sides = [_bare(side) for side in bare[3:5]]
    if len(moved) != 1 or own != moved or any(moved & set(assigned_in(part)) for part in rest if part is not None):
        return None
    alone = [side for side in sides if side[0] == "name" and side[2] in moved]
    if not alone or names.count(alone[0][2]) != 1:
        return None
    inside = ["block", body[1], _end(body), [part for part in rest if part is not None]]
    return _set(place, alone[0], alone[0]), bare, step[2], inside


def _steps(step: SyntaxPart) -> bool:
    """Whether a statement moves a variable on from where it stands, by what may be known; one that is set anew or goes
    on by what a memory, a stream or a call says is any number."""
    if step[0] != "binary":
        return True
    right = _bare(step[4])
    if step[2] != "=":
        return _plain(right)
    sides = [_bare(side) for side in right[3:5]] if right[0] == "binary" else []
    own = [side for side in sides if side[0] == "name" and side[2] == _bare(step[3])[-1]]
    return bool(own) and all(map(_plain, sides))


def _plain(tree: SyntaxPart) -> bool:
    return tree[0] in ("name", "literal") or (tree[0] == "binary" and all(_plain(_bare(side)) for side in tree[3:5]))


def _set(place: SyntaxPart, variable: SyntaxPart, value: SyntaxPart) -> SyntaxPart:
    return ["expression", place, ["binary", place, "=", variable, value, _INT]]


def _marked(part: SyntaxPart, flag: SyntaxPart | None) -> SyntaxPart:
    """`break` as setting the flag, and `continue`; without one as a mark that the loop may be left here."""
    match part[0]:
        case "break":
            place = part[1]
            if flag is None:
                return ["leaves", place]
            gone = _set(place, flag, ["literal", place, 1, _BOOL])
            return ["block", place, place[1], [gone, ["continue", place]]]
        case "block":
            return [*part[:3], [_marked(one, flag) for one in part[3]]]
        case "if":
            return [*part[:3], *(one if one is None else _marked(one, flag) for one in part[3:5])]
        case "label":
            return [*part[:3], _marked(part[3], flag)]
        case _:
            return part


def has_break(part: SyntaxPart | None) -> bool:
    return next(_breaks(part), None) is not None


def _breaks(part: SyntaxPart | None) -> Iterator[SyntaxPart]:
    """The places of each `break` of a loop; those of loops in it are gone already."""
    if part is None:
        return
    if part[0] == "break":
        yield part[1]
    inner = {"block": part[3:4], "if": [part[3:5]], "label": [part[3:4]]}.get(part[0], [])
    for one in inner[0] if inner else []:
        yield from _breaks(one)


def _end(body: SyntaxPart) -> int:
    """The line in which a statement ends."""
    return body[2] if body[0] == "block" else body[1][1]


def _bare(tree: SyntaxPart) -> SyntaxPart:
    while tree[0] == "cast":
        tree = tree[3]
    return tree
