"""What options a model of the zoo takes, read from its text: importing the model would need torch."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_HERE = "penstock.compiler.zoo."


@cache
def declared_options(name: str) -> tuple[tuple[str, str], ...]:
    """Name and usual value of each parameter of the model's `build`, which may stand in a file that it shares."""
    text = ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    shared = [
        one.module.removeprefix(_HERE)
        for one in text.body
        if isinstance(one, ast.ImportFrom) and one.module and one.module.startswith(_HERE)
    ]
    for file in (text, *(ast.parse((_FOLDER / f"{other}.py").read_text(encoding="utf-8")) for other in shared)):
        for found in ast.walk(file):
            if isinstance(found, ast.FunctionDef) and found.name == "build":
                return tuple(
                    (argument.arg, str(ast.literal_eval(value)))
                    for argument, value in zip(found.args.args, found.args.defaults, strict=True)
                )
    raise LookupError(f"zoo:{name} has no build")
