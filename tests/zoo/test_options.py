"""Options of the zoo's models: sizes, weights from a file, and shapes without weights."""

from __future__ import annotations

import pytest
import torch

from benchmarks.compile_blocks import compile_block
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.reference import parse_reference
from penstock.compiler.zoo._sizes import SHAPES, sizes_of
from penstock.compiler.zoo._transformer import attend


def load(model: str, *, weights: bool = True) -> LoadedModel:
    return load_model(parse_reference(model), weights=weights)


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("zoo:llama?size=huge", "sizes: tiny, small, real"),
        ("zoo:llama?mode=train", "modes: prefill, decode"),
        ("zoo:llama?heads=4&kv=3", "multiple of kv"),
        ("zoo:qwen?head=3", "head is even"),
        ("zoo:gpt2?d=10&heads=4", "d is a multiple of heads"),
        ("zoo:gemma?seq=-1", "at least 1"),
        ("zoo:attention?d=10&heads=4", "a multiple of heads"),
        ("zoo:ffn?activation=relu", "silu, gelu"),
        ("zoo:gpt2_text?layers=1000000", "at most 256 layers"),
        ("zoo:mlp?hidden=" + ",".join(["1"] * 2000), "at most 1000 layers"),
        ("zoo:mlp?hidden=" + "9" * 40, "at most 2,147,483,647"),
        ("zoo:unet?side=1073741824&depth=1000000", "a frame holds all windows"),
        ("zoo:llama?cache=99999999999999999999", "at most 2,147,483,647"),
        ("zoo:mlp?seed=99999999999999999999", "at most 2,147,483,647"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(model: str, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn, "ModuleList", None)  # none is built to be refused
    with pytest.raises(PenstockError) as caught:
        load(model)
    assert caught.value.code == "bad-option"
    assert limit in (caught.value.limit or "")


def test_real_sizes_are_the_published_ones() -> None:
    counts = {"gpt2": 12_596_224, "llama": 44_044_288, "qwen": 14_912_384, "gemma": 26_842_112}
    for family, count in counts.items():
        module = load(f"zoo:{family}?size=real", weights=False).module
        assert sum(parameter.numel() for parameter in module.parameters()) == count
    assert set(SHAPES) == set(counts)


def test_given_sizes_take_the_place_of_named_ones() -> None:
    sizes = sizes_of("llama", size="tiny", mode="decode", d=32, heads=4, cache=9)
    assert (sizes.d, sizes.head, sizes.kv, sizes.seq, sizes.cache) == (32, 8, 2, 1, 9)
    assert sizes_of("gpt2", size="tiny", mode="prefill", d=24, heads=3).kv == 3


def test_weights_are_the_same_for_the_same_seed() -> None:
    first, again, other = (load(f"zoo:llama?seed={seed}").module.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["mlp.up_proj.weight"], other["mlp.up_proj.weight"])


def test_decode_continues_what_prefill_began() -> None:
    prefill, decode = load("zoo:llama?seq=5"), load("zoo:llama?mode=decode&cache=4")
    x, mask, cos, sin = prefill.example_inputs
    wanted, k, v = prefill.module(x, mask, cos, sin)
    row = decode.module(x[4:], torch.ones(1, 5), cos[4:], sin[4:], k[:4], v[:4])
    torch.testing.assert_close(row[0], wanted[4:])
    torch.testing.assert_close(decode.example_inputs[2], cos[4:])


def test_attention_is_pytorchs_own() -> None:
    q, k, v = (torch.randn(3, 4, 8, generator=torch.Generator().manual_seed(i)) for i in range(3))
    mask = torch.ones(3, 3).tril()
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(0, 1) for x in (q, k, v)), attn_mask=mask.bool()
    )
    torch.testing.assert_close(attend(q, k, v, mask, 8**-0.5), wanted.transpose(0, 1).reshape(3, 32))


def test_shapes_alone_compile_to_the_same_operations() -> None:
    with_weights, without = import_model("zoo:llama?mode=decode"), import_model("zoo:llama?mode=decode", weights=False)
    assert str(prepare(without).module) == str(prepare(with_weights).module)
    assert without.samples is None
    assert without.signature == with_weights.signature
    assert all(not any(value.strides) for value in without.params.values())


def test_shapes_of_large_weights_take_no_memory() -> None:
    program = prepare(import_model("zoo:llama?size=real", weights=False))
    held = sum(value.nbytes for value in program.params.values() if any(value.strides))
    assert sum(value.size for value in program.params.values()) > 40_000_000
    assert held < 1_000_000


@pytest.mark.slow
def test_the_benchmark_times_every_stage() -> None:
    large = bytearray(b"1" * (3 << 29))  # what this process holds is none of the benchmark's
    row = compile_block("zoo:llama?mode=decode")
    stages = ("build", "export", "decompose", "lower", "hand_over", "simplify", "kernels", "streams", "emit")
    seconds = [row[f"{stage}_s"] for stage in stages]
    assert all(isinstance(value, float) and value > 0 for value in seconds)
    assert row["operations"] == 41
    assert isinstance(row["cpp_lines"], int)
    assert row["cpp_lines"] > 1000
    assert isinstance(row["rss_gb"], float)
    assert 0 < row["rss_gb"] * 2**30 < len(large)
