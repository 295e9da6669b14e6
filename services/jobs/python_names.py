"""Reads Python source from stdin and prints, as JSON, the names that it defines, or where it is no Python.

A program of its own, with limits: parsing runs nothing, but there are files of a megabyte that take minutes and
gigabytes to parse. It imports the standard library only, so that it starts in a moment.
"""

from __future__ import annotations

import ast
import json
import resource
import sys

SECONDS, BYTES = 5, 1 << 30


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    json.dump(look(sys.stdin.buffer.read(), sys.argv[1]), sys.stdout)


def look(source: bytes, file: str) -> dict[str, object]:
    """`names`, null if an import of everything makes them unknowable, `tasks`, `injects`, `kernels`; or `reason`."""
    try:
        tree = ast.parse(source, filename=file)
        names, tasks, kernels = top_level_names(tree), is_task_program(tree), kernels_of(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, SyntaxError):
            return {"reason": error.msg, "line": error.lineno}
        return {"reason": "it is nested too deeply or not text", "line": None}
    found = {"names": None if names is None else sorted(names), "tasks": tasks, "kernels": kernels}
    return {**found, "injects": injects(tree)}


def is_task_program(tree: ast.Module) -> bool:
    """Whether the file says so: it imports the language of task programs."""
    return any(isinstance(node, ast.ImportFrom) and node.module == "penstock.tasks" for node in tree.body)


def injects(tree: ast.Module) -> bool:
    """Whether it gives a task a body in another language, which is compiled and run."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "inject"
        for node in ast.walk(tree)
    )


def kernels_of(tree: ast.Module) -> list[str]:
    """The functions that Triton would compile, which are read and never executed."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one).split("(")[0] in ("triton.jit", "jit") for one in node.decorator_list)
    ]


def top_level_names(tree: ast.Module) -> set[str] | None:
    """Names bound at the top level; None if an import of everything makes them unknowable."""
    names: set[str] = set()
    stack: list[ast.stmt] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if any(alias.name == "*" for alias in node.names):
                return None
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            stack.extend(child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node)
    return names


if __name__ == "__main__":
    main()
