"""Folds a converter into the load or store beside it: words go straight to the block, without a FIFO between.

Only where the converter needs blocks: the load fills one while the other is sent on. A converter that holds one word
stays a task of its own, so that the words before it burst into a FIFO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from penstock.compiler.analysis.converter import ConverterPlan
from penstock.compiler.analysis.converting import choose_plan
from penstock.compiler.analysis.one_pass import OnePassPlan
from penstock.compiler.analysis.packing import split_at_tiles
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.itensor_types import LayoutAttr, expect_itensor
from penstock.compiler.transforms.module_rewrite import ModuleRewrite


@dataclass(frozen=True)
class FoldITensors(ModuleRewrite):
    """The pass."""

    def rewrite(self, module: ModuleOp) -> ModuleOp:
        for op in list(module.walk()):
            if isinstance(op, itensor.ConverterOp):
                plan = choose_plan(expect_itensor(op.source), expect_itensor(op.result))
                reader = next(iter(op.result.uses)).operation
                if isinstance(plan, OnePassPlan):
                    continue
                if isinstance(op.source.owner, itensor.LoadOp) and fits_tiles(
                    op.source.owner.layout, plan, plan.source
                ):
                    self._fold_load(op.source.owner, op)
                elif isinstance(reader, itensor.StoreOp) and fits_tiles(reader.layout, plan, plan.target):
                    self._fold_store(op, reader)
        return module

    def _fold_load(self, load: itensor.LoadOp, converter: itensor.ConverterOp) -> None:
        kind, words = expect_itensor(converter.result), expect_itensor(load.result)
        folded = itensor.LoadOp(load.sym_name.data, load.source, kind, load.layout, words)
        Rewriter.replace_op(converter, folded)
        Rewriter.erase_op(load)

    def _fold_store(self, converter: itensor.ConverterOp, store: itensor.StoreOp) -> None:
        words = expect_itensor(converter.result)
        folded = itensor.StoreOp(store.sym_name.data, converter.source, store.result.type, store.layout, words)
        Rewriter.replace_op(store, folded)
        Rewriter.erase_op(converter)


def fits_tiles(layout: LayoutAttr | None, plan: ConverterPlan, inside: Sequence[LoopOf]) -> bool:
    """Whether the loops by which blocks are handed over, and those inside, each stay within tiles or between them."""
    return layout is not None and all(
        split_at_tiles(loops, layout.layout) is not None for loops in (plan.shared, inside)
    )
