"""What is said of the zoo's options without torch is what the models take."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from penstock.compiler.zoo import model_names
from penstock.compiler.zoo._declared import declared_options


@pytest.mark.parametrize("name", model_names())
def test_options_read_from_the_text_are_those_of_build(name: str) -> None:
    parameters = inspect.signature(import_module(f"penstock.compiler.zoo.{name}").build).parameters
    assert declared_options(name) == tuple((one.name, str(one.default)) for one in parameters.values())
