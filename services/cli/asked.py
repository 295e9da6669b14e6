"""The options of a run on the command line: a command that takes them has one parameter, `asked`, in their place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from penstock.services.run_options import SUBMIT, RunOptions, Said, said

AskedOptions = Mapping[str, Any]
"""What was asked for by the option's own name."""


def takes_run_options(command: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a command every option that the table has for it. What is submitted is checked by the service alone."""
    names = [name for name in RunOptions.model_fields if command in said(name).commands]

    def changed(function: Callable[..., int]) -> Callable[..., int]:
        def run(**given: Any) -> int:
            asked = {name: given.pop(name) for name in names}
            return function(**given, asked=asked)

        own = inspect.signature(function, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in own.parameters.values():
            parameters += [_parameter(name, command) for name in names] if parameter.name == "asked" else [parameter]
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = own.replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess]
        return run

    return changed


def flags_given(asked: AskedOptions, command: str) -> dict[str, str]:
    """The options that were set to something else than a command's default, and how each is written."""
    found: dict[str, str] = {}
    for name, value in asked.items():
        usual = said(name).defaults.get(command, RunOptions.model_fields[name].default)
        if value is not None and value != usual and value != []:
            found[name] = said(name).flag or f"--{name.replace('_', '-')}"
    return found


def _parameter(name: str, command: str) -> inspect.Parameter:
    field, words = RunOptions.model_fields[name], said(name)
    flag = [words.flag] if words.flag else []
    if command == SUBMIT:
        option, default = typer.Option(*flag, help=_sentence(words)), None
    else:
        most = _bound(field, "le") if words.most is None else words.most
        option = typer.Option(*flag, help=words.help, min=_bound(field, "ge"), max=most)
        default = words.defaults.get(command, field.default)
    kind = _kind(field)
    if default is None or isinstance(default, list):
        kind, default = kind | None, None
    annotation = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _kind(field: FieldInfo) -> Any:
    """What the command line reads: numbers, switches, lists, and for all else text."""
    if get_origin(field.annotation) is list:
        return list[str]
    kinds = [get_args(kind)[0] if get_origin(kind) is Annotated else kind for kind in _alternatives(field.annotation)]
    return next((kind for kind in (bool, int, float) if kind in kinds), str)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return (annotation,) if get_origin(annotation) in (None, Annotated) else get_args(annotation)


def _bound(field: FieldInfo, name: str) -> float | None:
    return next((getattr(one, name) for one in field.metadata if hasattr(one, name)), None)


def _sentence(words: Said) -> str:
    """As commands of the service speak: with a capital letter, unless it begins with a value, and a full stop."""
    first = words.help.partition(" ")[0]
    return f"{words.help if first[-1] in ',:' else words.help[:1].upper() + words.help[1:]}."
