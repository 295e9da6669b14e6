"""The tasks dialect: a task program as one operation on tensors. Its text is its body; `compiler/tasks` reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """Tensors through a network of tasks. `options` set constants of the text."""

    name = "tasks.program"
    entry = prop_def(StringAttr)
    file = prop_def(StringAttr)
    source = prop_def(ArrayAttr[StringAttr])
    options = prop_def(DictionaryAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    assembly_format = (
        "$entry `of` $file $options `reads` $source `(` $inputs `)` attr-dict `:` type($inputs) `->` type($outputs)"
    )

    def __init__(
        self, entry: str, file: str, text: str, options: Mapping[str, str], inputs: Sequence[SSAValue],
        outputs: Sequence[Attribute],
    ) -> None:  # fmt: skip
        super().__init__(
            operands=[list(inputs)],
            result_types=[list(outputs)],
            properties={
                "entry": StringAttr(entry),
                "file": StringAttr(file),
                "source": ArrayAttr([StringAttr(line) for line in text.splitlines()]),
                "options": DictionaryAttr({name: StringAttr(value) for name, value in options.items()}),
            },
        )

    @property
    def text(self) -> str:
        return "\n".join(line.data for line in self.source) + "\n"

    @property
    def given_options(self) -> dict[str, str]:
        return {name: value.data for name, value in self.options.data.items() if isinstance(value, StringAttr)}

    def verify_(self) -> None:
        if not all(isa(value, StringAttr) for value in self.options.data.values()):
            raise VerifyException("tasks: options are texts")


TasksDialect = Dialect("tasks", [ProgramOp])
