"""Which models `penstock bench models` tries: the group, and the reference that a user would write."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from benchmarks.model_corpus import onnx_exports, plain_models, structured_models
from penstock.compiler.reference import LIBRARIES

ONNX = "onnx:"
"""Before the name of a function of `onnx_exports.py`, which writes the file that is meant."""


@dataclass(frozen=True)
class CorpusModel:
    name: str
    group: str
    reference: str

    @property
    def needs(self) -> str:
        """The package that must be installed for it, beyond Penstock's own."""
        if self.reference.startswith(ONNX):
            return onnx_exports.NEEDS.get(self.reference.removeprefix(ONNX), "")
        package = LIBRARIES.get(self.reference.partition(":")[0], "")
        return "" if package == "torch" else package


_TEXT = "num_attention_heads=2&hidden_size=16&num_hidden_layers=1&vocab_size=64&max_position_embeddings=32"
_DECODER = f"{_TEXT}&intermediate_size=32&num_key_value_heads=1&seq=8"
_ENCODER = f"{_TEXT}&intermediate_size=32&seq=8"
_OWN = "vocab_size=64&seq=8"

_TRANSFORMERS = {
    "gpt2": f"hf:gpt2?n_layer=1&n_embd=16&n_head=2&n_positions=32&{_OWN}",
    "gpt2-2-layers": f"hf:gpt2?n_layer=2&n_embd=16&n_head=2&n_positions=32&{_OWN}",
    "gpt2-block": f"hf:gpt2?n_layer=1&n_embd=16&n_head=2&n_positions=32&{_OWN}&part=h.0",
    "gpt2-lm-head": f"hf:GPT2LMHeadModel?n_layer=1&n_embd=16&n_head=2&n_positions=32&{_OWN}",
    "bert": f"hf:bert?{_ENCODER}",
    "bert-2-layers": f"hf:bert?{_ENCODER.replace('layers=1', 'layers=2')}",
    "bert-classifier": f"hf:BertForSequenceClassification?{_ENCODER}",
    "distilbert": f"hf:distilbert?dim=16&n_heads=2&n_layers=1&hidden_dim=32&max_position_embeddings=32&{_OWN}",
    "roberta": f"hf:roberta?{_ENCODER}",
    "electra": f"hf:electra?{_ENCODER}&embedding_size=16",
    "albert": f"hf:albert?{_ENCODER}&embedding_size=8",
    "t5-encoder": f"hf:T5EncoderModel?d_model=16&d_kv=8&num_heads=2&d_ff=32&num_layers=1&{_OWN}",
    "llama": f"hf:llama?{_DECODER}",
    "llama-block": f"hf:llama?{_DECODER}&part=layers.0",
    "qwen2": f"hf:qwen2?{_DECODER}",
    "qwen3": f"hf:qwen3?{_DECODER}&head_dim=8",
    "gemma": f"hf:gemma?{_DECODER}&head_dim=8",
    "mistral": f"hf:mistral?{_DECODER}&head_dim=8",
    "phi": f"hf:phi?{_DECODER}",
    "olmo": f"hf:olmo?{_DECODER}",
    "gpt-neox": f"hf:gpt_neox?{_ENCODER}",
    "opt": "hf:opt?hidden_size=16&num_hidden_layers=1&ffn_dim=32&num_attention_heads=2&max_position_embeddings=32"
    f"&word_embed_proj_dim=16&{_OWN}",
    "vit": "hf:vit?hidden_size=16&num_hidden_layers=1&num_attention_heads=2&intermediate_size=32&image_size=8"
    "&patch_size=4",
    "vit-layer": "hf:vit?hidden_size=16&num_hidden_layers=1&num_attention_heads=2&intermediate_size=32&image_size=8"
    "&patch_size=4&part=layers.0",
    "whisper-encoder-layer": "hf:whisper?d_model=16&encoder_layers=1&decoder_layers=1&encoder_attention_heads=2"
    "&decoder_attention_heads=2&encoder_ffn_dim=32&decoder_ffn_dim=32&num_mel_bins=8&max_source_positions=8"
    "&vocab_size=64&pad_token_id=0&bos_token_id=1&eos_token_id=2&decoder_start_token_id=1&part=encoder.layers.0",
    "clip-text": "hf:CLIPTextModel?hidden_size=16&num_hidden_layers=1&num_attention_heads=2&intermediate_size=32"
    f"&max_position_embeddings=32&eos_token_id=1&bos_token_id=0&{_OWN}",
}
_MIXER = "img_size=8&patch_size=4&num_blocks=1&embed_dim=16&num_classes=4"
_VIT = "img_size=8&patch_size=4&embed_dim=16&num_heads=2&depth=1&num_classes=4"
_TIMM = {
    "mixer": f"timm:MlpMixer?{_MIXER}",
    "mixer-blocks": f"timm:MlpMixer?{_MIXER.replace('blocks=1', 'blocks=2')}&part=blocks",
    "gmixer": f"timm:MlpMixer?{_MIXER}&mlp_ratio=2,4&mlp_layer=GluMlp",
    "resmlp": f"timm:MlpMixer?{_MIXER}&mlp_ratio=4&block_layer=ResBlock&norm_layer=Affine",
    "gmlp": f"timm:MlpMixer?{_MIXER}&mlp_ratio=6&block_layer=SpatialGatingBlock&mlp_layer=GatedMlp",
    "timm-vit": f"timm:VisionTransformer?{_VIT}",
    "timm-vit-block": f"timm:VisionTransformer?{_VIT}&part=blocks.0",
    "timm-vit-blocks": f"timm:VisionTransformer?{_VIT.replace('depth=1', 'depth=2')}&part=blocks",
    "torchvision-vit-encoder": "torchvision:VisionTransformer?image_size=8&patch_size=4&num_layers=1&num_heads=2"
    "&hidden_dim=16&mlp_dim=32&num_classes=4&part=encoder",
}
_LAYERS = {
    "lstm": "torch.nn:LSTM?input_size=6&hidden_size=8&seq=4",
    "lstm-bidirectional": "torch.nn:LSTM?input_size=6&hidden_size=8&seq=3&bidirectional=true&batch_first=true",
    "gru": "torch.nn:GRU?input_size=6&hidden_size=8&seq=4",
    "gru-2-layers": "torch.nn:GRU?input_size=6&hidden_size=8&num_layers=2&seq=3",
    "rnn": "torch.nn:RNN?input_size=6&hidden_size=8&seq=4",
    "rnn-relu": "torch.nn:RNN?input_size=6&hidden_size=8&seq=4&nonlinearity=relu",
    "lstm-cell": "torch.nn:LSTMCell?input_size=6&hidden_size=8",
    "gru-cell": "torch.nn:GRUCell?input_size=6&hidden_size=8",
    "multihead-attention": "torch.nn:MultiheadAttention?embed_dim=16&num_heads=2",
    "multihead-attention-kdim": "torch.nn:MultiheadAttention?embed_dim=16&num_heads=4&kdim=8&vdim=12&batch_first=true",
    "encoder-layer": "torch.nn:TransformerEncoderLayer?d_model=16&nhead=2&dim_feedforward=32",
    "encoder-layer-gelu": "torch.nn:TransformerEncoderLayer?d_model=16&nhead=2&dim_feedforward=32&activation=gelu"
    "&norm_first=true&batch_first=true",
    "decoder-layer": "torch.nn:TransformerDecoderLayer?d_model=16&nhead=2&dim_feedforward=32",
    "transformer": "torch.nn:Transformer?d_model=16&nhead=2&num_encoder_layers=1&num_decoder_layers=1"
    "&dim_feedforward=32&seq=6",
    "bilinear": "torch.nn:Bilinear?in1_features=6&in2_features=5&out_features=4&batch=3",
}


def corpus() -> list[CorpusModel]:
    return list(_corpus())


def _corpus() -> Iterator[CorpusModel]:
    for module in (plain_models, structured_models):
        for name in _functions(module):
            yield CorpusModel(name.replace("_", "-"), "plain", f"{module.__file__}:{name}")
    for group, models in (("torch.nn", _LAYERS), ("timm", _TIMM), ("transformers", _TRANSFORMERS)):
        for name, reference in models.items():
            yield CorpusModel(name, group, reference)
    for name in onnx_exports.WRITERS:
        yield CorpusModel(name, "onnx", f"{ONNX}{name}")


def _functions(module: ModuleType) -> list[str]:
    """The models that a file defines, in its order."""
    found = inspect.getmembers(module, inspect.isfunction)
    own = [function for _, function in found if function.__module__ == module.__name__]
    return [function.__name__ for function in sorted(own, key=lambda f: f.__code__.co_firstlineno)]
