"""Convert a Llama GGUF file to a `transformers` folder: float32 safetensors and the tokenizer.

Dequantising to float32 is exact, and so is the rest: the result equals what `transformers` makes of
the same file, without loading torch. Only what the catalog needs is known; anything else is refused
before a tensor is read.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, ReaderTensor, dequantize
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from eaglebench.assets.progress import Progress
from eaglebench.errors import AssetError
from eaglebench.files import give_usual_rights

_OUTER = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_INNER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_CONTROL_TOKEN = 3  # gguf's TokenType.CONTROL
_PRE_TOKENIZER = "smollm"


def convert_gguf(source: Path, folder: Path, progress: Progress) -> None:
    """Write config, weights and tokenizer to a new `folder`.

    Raises:
        AssetError: the file is no GGUF, or holds an architecture, tokenizer or tensor that is not
            known here.
    """
    try:
        reader = GGUFReader(source)
    except (ValueError, OSError, IndexError) as error:
        raise AssetError(f"{source.name} is not a readable GGUF file: {error}") from error
    facts = {name: field.contents() for name, field in reader.fields.items()}
    _check(source, facts)
    folder.mkdir(parents=True)
    tied = all(tensor.name != "output.weight" for tensor in reader.tensors)
    _write_json(folder / "config.json", _config(facts, tied=tied))
    _write_json(folder / "generation_config.json", _token_ids(facts))
    _write_tokenizer(folder, facts)
    weights = _weights(reader.tensors, facts, progress)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    give_usual_rights(folder / "model.safetensors")


def _check(source: Path, facts: dict[str, Any]) -> None:
    wanted = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": _PRE_TOKENIZER,
    }
    for key, value in wanted.items():
        if facts.get(key) != value:
            raise AssetError(f"{source.name}: {key} is {facts.get(key)!r}; only {value!r} is known")


def _config(facts: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    hidden, heads = facts["llama.embedding_length"], facts["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "hidden_size": hidden,
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "max_position_embeddings": facts["llama.context_length"],
        "rms_norm_eps": facts["llama.attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_type": "default", "rope_theta": facts["llama.rope.freq_base"]},
        "tie_word_embeddings": tied,
        **_token_ids(facts),
    }


def _token_ids(facts: dict[str, Any]) -> dict[str, int]:
    return {
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
    }


def _write_tokenizer(folder: Path, facts: dict[str, Any]) -> None:
    """Byte-level BPE that takes digits one by one, which is what `smollm` stands for."""
    tokens: list[str] = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = facts["tokenizer.ggml.token_type"]
    marks = [t for t, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    tokenizer.save(str(folder / "tokenizer.json"))
    ids = _token_ids(facts)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[ids["bos_token_id"]],
        "eos_token": tokens[ids["eos_token_id"]],
        "pad_token": tokens[ids["pad_token_id"]],
        "model_max_length": facts["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": facts["tokenizer.chat_template"],
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _weights(
    tensors: list[ReaderTensor], facts: dict[str, Any], progress: Progress
) -> dict[str, NDArray[np.float32]]:
    weights: dict[str, NDArray[np.float32]] = {}
    total = sum(int(tensor.n_bytes) for tensor in tensors)
    done = 0
    for tensor in tensors:
        progress("converting", done, total)
        name, kind = _place(tensor.name)
        value = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        if kind == "attn_q":
            value = _halves_first(value, facts["llama.attention.head_count"])
        elif kind == "attn_k":
            value = _halves_first(value, facts["llama.attention.head_count_kv"])
        weights[name] = np.ascontiguousarray(value)
        done += int(tensor.n_bytes)
    progress("converting", total, total)
    return weights


def _place(name: str) -> tuple[str, str]:
    """The name in `transformers` of a GGUF tensor, and which kind of tensor it is."""
    parts = name.removesuffix(".weight").split(".")
    if parts[0] == "blk" and len(parts) == 3 and parts[2] in _INNER:  # blk, layer, kind
        return f"model.layers.{parts[1]}.{_INNER[parts[2]]}.weight", parts[2]
    if parts[0] in _OUTER and len(parts) == 1:
        return f"{_OUTER[parts[0]]}.weight", parts[0]
    raise AssetError(f"tensor {name} of the GGUF file has no place in a Llama model")


def _halves_first(value: NDArray[np.float32], num_heads: int) -> NDArray[np.float32]:
    """Rows of each head from pairs next to each other (GGUF) to first and second half."""
    rows, columns = value.shape
    pairs = value.reshape(num_heads, rows // num_heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
