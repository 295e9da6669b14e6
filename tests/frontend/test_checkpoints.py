"""Weights from safetensors files: by name into the model, streamed, or refused whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.checkpoints import together
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.reference import FileReference, TaskReference, parse_reference

QWEN = "zoo:qwen?weights={file}&prefix=model.layers.0."
TEXT = "zoo:gpt2_text?layers=2&d=16&heads=2&tokens=32&cache=8"


def load(model: str, *, weights: bool = True) -> LoadedModel:
    return load_model(parse_reference(model), weights=weights)


def state(model: str) -> dict[str, torch.Tensor]:
    return {name: value.contiguous() for name, value in load(model).module.state_dict().items()}


def refused(model: str) -> str:
    with pytest.raises(PenstockError) as caught:
        load(model)
    assert caught.value.code == "weights-file"
    assert "\n" not in caught.value.one_line()
    return caught.value.one_line()


def test_weights_come_by_name_and_other_floats_become_float32(tmp_path: Path) -> None:
    source, file = state("zoo:qwen?seed=3"), tmp_path / "w.safetensors"
    stored = {f"model.layers.0.{name}": value.half() for name, value in source.items()}
    save_file({**stored, "model.layers.1.other": torch.ones(1)}, file)
    program = import_model(QWEN.format(file=file))
    kept = program.params["mlp.gate_proj.weight"]
    assert torch.equal(torch.as_tensor(kept), source["mlp.gate_proj.weight"].half().float())


def test_shards_are_found_by_their_index_and_by_a_folder(tmp_path: Path) -> None:
    source = {f"transformer.{name}": value for name, value in state(f"{TEXT}&seed=5").items()}
    source["transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8)  # a mask, as published files hold it
    names = list(source)
    files = {f"m-{n}.safetensors": names[n::3] for n in range(3)}
    for file, own in files.items():
        save_file({name: source[name] for name in own}, tmp_path / file)
    index = tmp_path / "m.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: file for file, own in files.items() for name in own}}))
    for place in (tmp_path, index):
        found = load(f"{TEXT}&weights={place}").module.state_dict()
        assert all(torch.equal(value, source[f"transformer.{name}"]) for name, value in found.items())
    assert load(f"{TEXT}&weights={tmp_path}", weights=False).has_weights is False
    (tmp_path / "m-1.safetensors").unlink()
    assert "m-1.safetensors" in refused(f"{TEXT}&weights={tmp_path}")
    index.write_text(json.dumps({"weight_map": {"a": "../x.safetensors"}}))
    assert "beside it" in refused(f"{TEXT}&weights={tmp_path}")
    index.write_text("[]")
    assert "not an index" in refused(f"{TEXT}&weights={tmp_path}")
    index.write_text(json.dumps({"weight_map": {"a": "m-0.safetensors"}}))
    assert "index names what is not in the files: a" in refused(f"{TEXT}&weights={tmp_path}")


def test_all_that_does_not_fit_is_named_at_once(tmp_path: Path) -> None:
    source, file = state(TEXT), tmp_path / "w.safetensors"
    for layer in range(2):
        del source[f"h.{layer}.ln_1.weight"]
    source |= {"h.0.more": torch.ones(1), "ln_f.weight": torch.ones(3), "ln_f.bias": torch.ones(16, dtype=torch.int8)}
    save_file(source, file)
    said = refused(f"{TEXT}&weights={file}")
    for words in ("not in the file: h.{0..1}.ln_1.weight", "not in the model: h.0.more",
                  "of shape (3,) where the model has (16,): ln_f.weight",
                  "of type I8 where the model has float32: ln_f.bias"):  # fmt: skip
        assert words in said


def test_numbers_that_are_none_are_named(tmp_path: Path) -> None:
    source, file = state(TEXT), tmp_path / "w.safetensors"
    source["h.0.ln_1.weight"][3] = float("nan")
    source["wte.weight"][1, 2] = float("-inf")
    source["wpe.weight"] = source["wpe.weight"].double() * 1e300  # no float32 has these
    save_file(source, file)
    assert "NaN or infinite numbers in h.0.ln_1.weight, wpe.weight, wte.weight" in refused(f"{TEXT}&weights={file}")


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    text, good = tmp_path / "text.safetensors", tmp_path / "good.safetensors"
    text.write_text("these are no tensors")
    assert "not a safetensors file" in refused(f"{TEXT}&weights={text}")
    save_file(state(TEXT), good)
    text.write_bytes(good.read_bytes()[:-8])
    assert "not a safetensors file" in refused(f"{TEXT}&weights={text}")
    assert "does not exist" in refused(f"{TEXT}&weights={tmp_path}/missing.safetensors")
    (tmp_path / "pickles").mkdir()
    (tmp_path / "pickles" / "pytorch_model.bin").write_bytes(b"x")
    assert "pickles can run code" in refused(f"{TEXT}&weights={tmp_path}/pickles")
    with pytest.raises(PenstockError, match="a prefix without weights"):
        load(f"{TEXT}&prefix=h.")


def test_a_python_model_takes_them_as_well(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)\n"
        "        self.b.weight = self.a.weight\n\n    def forward(self, x):\n        return self.b(self.a(x))\n\n\n"
        "def model():\n    return Net(), (torch.ones(1, 4),)\n"
    )
    numbers = {"a.weight": torch.eye(4), "a.bias": torch.ones(4), "b.bias": torch.zeros(4)}
    save_file(numbers, tmp_path / "w.safetensors")  # the tied one once
    reference = f"{file}:model?weights={tmp_path}/w.safetensors"
    module = load(reference).module
    assert torch.equal(module(torch.zeros(1, 4)), torch.ones(1, 4))
    save_file({**numbers, "b.weight": torch.zeros(4, 4)}, tmp_path / "w.safetensors")
    assert "one tensor in the model, several in the file: a.weight, b.weight" in refused(reference)
    assert isinstance(parse_reference("a.py:f?weights=w"), FileReference)
    assert isinstance(parse_reference("a.py:f?weights=w&M=3"), TaskReference)
    assert str(parse_reference(reference)) == reference


def test_names_that_differ_in_a_number_are_one() -> None:
    assert together(["h.0.a", "h.1.a", "h.2.a", "b"]) == "b, h.{0..2}.a"
    assert together(["h.0.a", "h.2.a"]) == "h.0.a, h.2.a"


def test_a_folder_of_transformers_brings_its_configuration(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra models is not installed")
    sizes = {"num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 32}
    config = transformers.LlamaConfig(
        num_attention_heads=4, num_key_value_heads=2, rope_theta=500.0, max_position_embeddings=16, **sizes
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path, max_shard_size="5KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    loaded = load(f"hf:llama?weights={tmp_path}&cache=8")
    with torch.no_grad():
        wanted = model(torch.tensor([[3]])).logits[0]
        torch.testing.assert_close(loaded.module(torch.tensor([3]), torch.tensor([0])), wanted)
    assert "of shape (32, 16) where the model has (64, 16)" in refused(
        f"hf:llama?weights={tmp_path}&vocab_size=64&cache=8"
    )
    assert "'llama'" in refused(f"hf:gpt2?weights={tmp_path}")


def test_transformers_own_other_names_in_files_are_known(tmp_path: Path) -> None:
    """GPT-NeoX keeps its head as embed_out in files; older releases of BERT said gamma and beta."""
    transformers = pytest.importorskip("transformers", reason="the extra models is not installed")
    sizes = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 32}
    model = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(num_attention_heads=2, **sizes)).eval()
    model.save_pretrained(tmp_path / "neox")
    loaded = load(f"hf:gpt_neox?weights={tmp_path / 'neox'}&cache=8")
    with torch.no_grad():
        wanted = model(torch.tensor([[3]])).logits[0]
        torch.testing.assert_close(loaded.module(torch.tensor([3]), torch.tensor([0])), wanted)
    old = transformers.BertModel(transformers.BertConfig(num_attention_heads=2, **sizes)).state_dict()
    names = {name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
             for name in old}  # fmt: skip
    save_file({names[name]: value.contiguous() for name, value in old.items()}, tmp_path / "old.safetensors")
    given = "&".join(f"{name}={value}" for name, value in {**sizes, "num_attention_heads": 2}.items())
    assert load(f"hf:bert?weights={tmp_path / 'old.safetensors'}&{given}").module is not None


@pytest.mark.parametrize(
    ("model", "code", "word"),
    [
        ("hf:llama?num_attention_heads=4&num_key_value_heads=3&cache=8", "unknown-option", "3 heads of keys"),
        ("hf:gpt2?n_embd=16&n_head=3&cache=8", "model-options", "divisible"),
        ("hf:gpt2?n_embd=16&n_head=2&n_positions=32&cache=64", "unknown-option", "room for 32"),
        ("hf:gpt2?n_embd=16&n_head=2&cache=8&chunk=9", "unknown-option", "at most cache="),
        ("hf:gpt2?n_embd=16&n_head=2&cache=8&chunk=x", "bad-option", "chunk='x'"),
        ("hf:mamba?hidden_size=16&num_hidden_layers=1&vocab_size=32&cache=8", "unknown-option", "no attention heads"),
        ("hf:bloom?n_layer=1&hidden_size=16&n_head=2&vocab_size=32&cache=8", "unknown-option", "where a token stands"),
        ("hf:llama?weights={dynamic}&cache=8", "unknown-option", "rotary positions of kind dynamic"),
    ],
)
def test_attention_that_does_not_fit_is_refused(model: str, code: str, word: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra models is not installed")
    save_file({"a": torch.ones(1)}, tmp_path / "w.safetensors")
    config = {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 1,
              "vocab_size": 32, "rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(PenstockError) as caught:
        load(model.format(dynamic=tmp_path))
    assert caught.value.code == code
    assert word in caught.value.one_line()
