"""What arrives in xDSL is what MLIR's own text says."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import penstock.compiler.frontend.lower as lower
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.frontend.hand_over import ORIGIN, hand_over


@pytest.mark.parametrize("model", ["zoo:mlp?inputs=5&hidden=4,3&outputs=2", "zoo:gemma?size=tiny&mode=decode"])
def test_modules_equal_their_text(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def compare(module: Any, context: Context) -> ModuleOp:
        result = hand_over(module, context)
        plain = result.clone()
        for op in plain.walk():
            op.attributes.pop(ORIGIN, None)
        text = module.operation.get_asm(print_generic_op_form=True)
        assert str(plain) == str(Parser(make_context(), text).parse_module())
        compared.append(model)
        return result

    monkeypatch.setattr(lower, "hand_over", compare)
    import_model(model, weights=False)
    assert compared == [model]
