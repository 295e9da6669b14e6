"""Models of libraries: PyTorch's own layers here; transformers and timm where they are installed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.libraries.called import Arguments, as_called, cut_out
from penstock.compiler.frontend.libraries.values import simple_defaults
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import describe, load_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.reference import LibraryReference, check_installed, parse_reference

GPT2 = "hf:gpt2?n_layer=1&n_embd=16&n_head=2&vocab_size=64&n_positions=32&seq=4"


def load(text: str, *, weights: bool = True) -> LoadedModel:
    return load_model(parse_reference(text), weights=weights)


def program(module: nn.Module, *inputs: torch.Tensor) -> Program:
    return import_loaded(LoadedModel("model", "model", module.eval(), inputs))


def test_a_layer_is_built_the_same_each_time_and_takes_what_fits_it() -> None:
    first, again = (
        load("torch.nn:LSTM?input_size=6&hidden_size=8&seq=3"),
        load("torch.nn:LSTM?input_size=6&hidden_size=8&seq=3"),
    )
    assert [tuple(x.shape) for x in first.example_inputs] == [(3, 1, 6)]
    assert all(torch.equal(a, b) for a, b in zip(first.module.parameters(), again.module.parameters(), strict=True))
    assert torch.equal(first.example_inputs[0], again.example_inputs[0])
    other = load("torch.nn:LSTM?input_size=6&hidden_size=8&seq=3&seed=1")
    assert not torch.equal(next(first.module.parameters()), next(other.module.parameters()))


@pytest.mark.parametrize(
    ("reference", "shapes"),
    [
        ("torch.nn:MultiheadAttention?embed_dim=8&num_heads=2&kdim=6&vdim=4&seq=5", [(5, 1, 8), (5, 1, 6), (5, 1, 4)]),
        ("torch.nn:TransformerDecoderLayer?d_model=8&nhead=2&batch_first=true&seq=3&batch=2", [(2, 3, 8), (2, 3, 8)]),
        ("torch.nn:GRUCell?input_size=3&hidden_size=4&batch=2", [(2, 3)]),
        ("torch.nn:GELU?input=2,3", [(2, 3)]),
    ],
)
def test_layers_know_their_inputs(reference: str, shapes: list[tuple[int, ...]]) -> None:
    model = load(reference)
    assert [tuple(x.shape) for x in model.example_inputs] == shapes
    assert load(reference, weights=False).has_weights is False
    model.module(*model.example_inputs)


@pytest.mark.parametrize(
    ("reference", "code", "word"),
    [
        ("torch.nn:LSTMM?input_size=3", "unknown-model", "'LSTM'"),
        ("torch.nn:LSTM?input_sise=3", "unknown-option", "input_size"),
        ("torch.nn:LSTM?input_size=3", "model-options", "hidden_size"),
        ("torch.nn:GELU", "bad-option", "input="),
        ("torch.nn:GELU?input=2,x", "bad-option", "no shape"),
        ("torch.nn:Linear?in_features=3&out_features=3&device=cuda", "bad-option", "device"),
        ("torch.nn:Linear?in_features=3&out_features=3&__class__=x", "bad-option", "no option"),
        ("torch.nn:Linear?in_features=20000&out_features=20000", "model-too-large", "268,435,456"),
        ("torch.nn:Linear?in_features=99999999999&out_features=3", "bad-option", "range"),
        ("torch.nn:Bilinear?in1_features=20000&in2_features=20000&out_features=9", "model-too-large", "elements"),
        ("torch.nn:GELU?input=99999,99999", "model-too-large", "elements"),
        ("torch.nn:Sequential", "unknown-model", "no layer"),
        ("torch.nn:Transformer?d_model=8&nhead=2&num_encoder_layers=99999", "bad-option", "1000"),
        ("torch.nn:LSTM?input_size=3&hidden_size=4&batch=0", "bad-option", "no size"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(reference: str, code: str, word: str) -> None:
    with pytest.raises(PenstockError) as caught:
        load(reference)
    assert caught.value.code == code
    assert word in caught.value.one_line()
    assert "\n" not in caught.value.one_line()


def test_a_library_that_is_missing_is_named_before_anything_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PenstockError, match=r"needs the package transformers.*pip install"):
        check_installed(LibraryReference("hf", "gpt2"))


class Keywords(nn.Module):
    """Called with keywords, a tuple, a flag and positions, as blocks of transformers are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[0])
        return self.inner(x, scale=(x * 2, x + 1), positions=positions, double=True)


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(
        self, x: torch.Tensor, scale: tuple[torch.Tensor, torch.Tensor], positions: torch.Tensor, double: bool = False
    ) -> torch.Tensor:
        y = self.layer(x) * scale[0] + scale[1] + positions[:, None].float()
        return 2 * y if double else y


def test_a_part_is_called_as_the_model_calls_it() -> None:
    whole, x = Keywords().eval(), torch.randn(2, 3)
    wanted = whole(x)
    part, arguments = cut_out(whole, "inner", Arguments((x,)), "model")
    module, inputs = as_called(part, arguments)
    assert [tuple(t.shape) for t in inputs] == [(2, 3)] * 3  # positions are the part's own
    torch.testing.assert_close(module(*inputs), wanted)
    imported = program(module, *inputs)
    assert [port.name for port in imported.signature.inputs] == ["x", "scale_0", "scale_1"]
    assert set(imported.params) >= {"layer.weight", "layer.bias"}
    for part_name in ("outer", "inner.layer.weight"):
        with pytest.raises(PenstockError, match="no part"):
            cut_out(whole, part_name, Arguments((x,)), "model")


@dataclass
class Answer:
    logits: torch.Tensor
    hidden: torch.Tensor


class Many(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.layer = kind, nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> object:
        y = self.layer(x)
        return {
            "tensor": y, "tuple": (y, y + x), "one": (y,), "nested": (y, (y + x, y * 2)), "none": (y, None),
            "mapping": {"logits": y, "a b": y + x}, "dataclass": Answer(y, y + x), "clash": {"x": y},
        }[self.kind]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("tensor", ["output"]), ("tuple", ["output0", "output1"]), ("one", ["output"]),
        ("nested", ["output0", "output1_0", "output1_1"]), ("none", ["output"]), ("mapping", ["logits", "a_b"]),
        ("dataclass", ["logits", "hidden"]), ("clash", ["x_1"]),
    ],
)  # fmt: skip
def test_results_have_the_names_that_the_model_gives_them(kind: str, names: list[str]) -> None:
    imported = program(Many(kind), torch.randn(2, 3))
    assert [port.name for port in imported.signature.outputs] == names
    assert imported.samples is not None
    assert len(imported.samples.outputs) == len(names)


def test_values_from_layers_that_are_called_by_a_number() -> None:
    imported = program(nn.Sequential(nn.Embedding(4, 3), nn.Linear(3, 2)), torch.tensor([[0, 2]]))
    assert [port.name for port in imported.signature.inputs] == ["embedding_0"]


def test_gpt2_by_reference() -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    model = load(GPT2)
    imported = import_loaded(model)
    assert [port.name for port in imported.signature.outputs] == ["last_hidden_state"]
    assert imported.host is not None
    assert {node["op"] for node in imported.host.graph["before"]} >= {"aten.embedding.default"}
    block = import_loaded(load(f"{GPT2}&part=h.0"))
    assert [port.shape for port in block.signature.inputs] == [(1, 4, 16)]
    assert block.host is None


def test_tokens_go_to_experts_by_look_ups_of_weights() -> None:
    """The library's own default sorts tokens by expert, whose numbers of tokens are known at run time only."""
    pytest.importorskip("transformers", reason="needs transformers")
    experts = "hf:mixtral?hidden_size=8&num_hidden_layers=1&num_attention_heads=2&num_key_value_heads=1&vocab_size=16"
    imported = import_loaded(load(f"{experts}&intermediate_size=8&num_local_experts=3&seq=3"))
    assert imported.host is not None
    assert len(imported.host.graph["between"]) == 1
    assert imported.samples is not None
    for ours, theirs in zip(run(prepare(imported), imported.samples.inputs), imported.samples.outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("hf:gpt22", "unknown-model"),
        ("hf:os", "unknown-model"),
        (f"{GPT2}&n_layers_typo=2", "unknown-option"),
        (f"{GPT2}&attn_implementation=some/kernel", "unknown-option"),
        (f"{GPT2}&auto_map=x", "unknown-option"),
        (f"{GPT2}&_name_or_path=/etc/passwd", "bad-option"),
        ("hf:gpt2?n_embd=100000&n_head=2", "model-too-large"),
        ("hf:gpt2?n_layer=100000&n_embd=8&n_head=2", "bad-option"),
        (GPT2.replace("n_positions=32", "n_positions=100000000"), "model-too-large"),
        (f"{GPT2}&part=h.9", "unknown-option"),
        (f"{GPT2}&n_head=3", "model-reference"),
        ("hf:dpt?backbone_out_indices=microsoft/resnet-50", "bad-option"),
        (f"{GPT2.replace('n_head=2', 'n_head=3')}", "model-options"),
    ],
)
def test_transformers_models_that_are_refused(reference: str, code: str) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    with pytest.raises(PenstockError) as caught:
        load(reference)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("reference", "shape"),
    [
        ("phi3?hidden_size=16&num_hidden_layers=1&num_attention_heads=2&intermediate_size=32&vocab_size=64", (1, 16)),
        ("gpt_neo?hidden_size=16&num_layers=1&num_heads=2&vocab_size=64&attention_types=[[[\"local\"],1]]", (1, 16)),
        ("patchtst?d_model=16&ffn_dim=32&num_hidden_layers=1&context_length=12&num_input_channels=2", (1, 12, 2)),
        ("wav2vec2?hidden_size=16&num_hidden_layers=1&num_attention_heads=2&intermediate_size=32&num_conv_pos_embeddings=4"
         "&num_conv_pos_embedding_groups=2&conv_dim=8,8&conv_kernel=4,3&conv_stride=2,2&seq=5", (1, 24)),
        ("perceiver?num_latents=4&d_latents=16&d_model=16&num_self_attends_per_block=1&input=1,8,16", (1, 8, 16)),
        ("SamVisionModel?hidden_size=8&num_hidden_layers=1&num_attention_heads=2&image_size=16&patch_size=4&window_size=2"
         "&output_channels=4&global_attn_indexes=0&mlp_dim=8", (1, 3, 16, 16)),
        ("vit_mae?hidden_size=8&num_hidden_layers=1&num_attention_heads=2&intermediate_size=8&image_size=16&patch_size=4"
         "&mask_ratio=0", (1, 3, 16, 16)),
        ("dpt?hidden_size=8&num_hidden_layers=4&num_attention_heads=2&intermediate_size=8&image_size=16&patch_size=4"
         "&backbone_out_indices=0,1,2,3&neck_hidden_sizes=4,4,4,4&fusion_hidden_size=4", (1, 3, 16, 16)),
        ("resnet?embedding_size=4&hidden_sizes=4,4,4,4&depths=1,1,1,1", (1, 3, 224, 224)),
        ("time_series_transformer?prediction_length=2&context_length=6&d_model=16&encoder_layers=1&decoder_layers=1"
         "&lags_sequence=1,2,4&num_time_features=1&num_static_real_features=1", (1, 10)),
    ],
)  # fmt: skip
def test_a_small_vocabulary_images_series_and_sound_are_built_at_first_try(
    reference: str, shape: tuple[int, ...]
) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    assert tuple(load(f"hf:{reference}").example_inputs[0].shape) == shape


def test_options_of_a_class_that_hands_on_what_it_does_not_know() -> None:
    class Lower(torch.nn.Module):
        def __init__(self, width: int = 3, **rest: int) -> None:
            super().__init__()

    class Upper(Lower):
        def __init__(self, depth: int = 2, **rest: int) -> None:
            super().__init__(**rest)

    assert simple_defaults(Upper) == {"depth": 2, "width": 3}


def test_a_message_that_only_announces_is_left_for_its_cause() -> None:
    error = ValueError("Class validation error for 'x':\n    ValueError: too few")
    error.__cause__ = ValueError("too few")
    assert describe(error) == "ValueError: too few"


def test_classes_of_vision_models_take_all_their_arguments() -> None:
    pytest.importorskip("timm", reason="needs timm")
    small = "timm:MlpMixer?img_size=8&patch_size=4&num_blocks=1&embed_dim=16&num_classes=4"
    assert tuple(load(small).example_inputs[0].shape) == (1, 3, 8, 8)
    assert "ResBlock" in repr(load(f"{small}&mlp_ratio=4&block_layer=ResBlock&norm_layer=Affine").module)
    for options, code in (
        ("&block_layer=Pathlib", "bad-option"), ("&embed_dimm=3", "unknown-option"), ("&pretrained=true", "bad-option")
    ):  # fmt: skip
        with pytest.raises(PenstockError) as caught:
            load(small + options)
        assert caught.value.code == code
    with pytest.raises(PenstockError, match="name the model's class"):
        load("timm:mixer_s32_224?num_blocks=1")


def test_references_are_read_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from penstock.compiler.reference import parse_reference; "
        "parse_reference('hf:gpt2?n_layer=2'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
