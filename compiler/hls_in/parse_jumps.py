"""`continue` as conditions: what follows it in a loop's body stands in the other branch."""

from __future__ import annotations

from typing import Any

SyntaxPart = list[Any]
_TANGLED = "continue in one of several conditions that both go on"


def without_continue(body: SyntaxPart) -> SyntaxPart:
    """The body of a loop without `continue` of that loop."""
    if not skips(body):
        return body
    statements = listed(body)
    end = body[2] if body[0] == "block" else body[1][1]
    return ["block", body[1], end, _structured(statements, end)]


def _structured(parts: list[SyntaxPart], end: int) -> list[SyntaxPart]:
    for at, part in enumerate(parts):
        if not skips(part):
            continue
        before, rest = parts[:at], parts[at + 1 :]
        match part[0]:
            case "continue":
                return before
            case "block":
                return _structured([*before, *part[3], *rest], end)
            case "if":
                yes, no = listed(part[3]), listed(part[4])
                if rest and not _ends(yes) and not _ends(no):
                    return [*before, ["bad", part[1], _TANGLED]]
                branches = [_branch(own if _ends(own) else [*own, *rest], part, end) for own in (yes, no)]
                return [*before, [*part[:3], *branches]]
            case _:
                return [*before, ["bad", part[1], "continue statement"]]
    return parts


def _branch(parts: list[SyntaxPart], part: SyntaxPart, end: int) -> SyntaxPart:
    made = _structured(parts, end)
    return ["block", made[0][1], end, made] if made else ["group", part[1], []]


def _ends(parts: list[SyntaxPart]) -> bool:
    """Whether a list of statements surely ends with the iteration."""
    return any(
        part[0] == "continue"
        or (part[0] == "block" and _ends(part[3]))
        or (part[0] == "if" and _ends(listed(part[3])) and _ends(listed(part[4])))
        for part in parts
    )


def skips(part: SyntaxPart | None) -> bool:
    """Whether there is a `continue` in a statement; those of loops in it are gone already."""
    if part is None or part[0] not in ("continue", "block", "if", "label"):
        return False
    if part[0] == "label":
        return skips(part[3])
    return part[0] == "continue" or any(map(skips, part[3] if part[0] == "block" else part[3:5]))


def listed(part: SyntaxPart | None) -> list[SyntaxPart]:
    if part is None:
        return []
    return part[3] if part[0] == "block" else [part]
