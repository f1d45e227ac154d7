"""Small wheels and GGUF files in the form of the real ones, and the assets made of them."""

import zipfile
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType, quantize

from eaglebench.assets.cache import file_sha256
from eaglebench.assets.catalog import Asset, AssetKind, Wheel

HIDDEN, MLP, HEADS, KV_HEADS, LAYERS = 64, 96, 4, 2, 2
TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "ab", "1", "2", "Ġ", "Ċ")
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"


def make_wheel(path: Path, member: str, content: bytes) -> Path:
    """A wheel with one file that matters."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("package/__init__.py", "raise SystemExit")
        archive.writestr(member, content)
    return path


def make_asset(
    raw: Path, *, name: str = "small", kind: AssetKind = "questions", converts: bool = False
) -> Asset:
    """An asset whose file is `raw`."""
    wheel = Wheel(
        requirement="no-such-package==1.0",
        member_suffix=f"data/{raw.name}",
        sha256=file_sha256(raw),
        num_bytes=raw.stat().st_size,
        wheel_bytes=1000,
    )
    return Asset(
        name=name,
        kind=kind,
        description="for a test",
        licence="Apache-2.0",
        wheel=wheel,
        converts_gguf=converts,
    )


def make_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    pre: str = "smollm",
    extra_tensor: str | None = None,
) -> Path:
    """A Llama of two layers, quantised as the real one is."""
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([TokenType.CONTROL] * 3 + [TokenType.NORMAL] * (len(TOKENS) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    _add_tensors(writer, extra_tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tensors(writer: GGUFWriter, extra_tensor: str | None) -> None:
    generator = np.random.default_rng(0)
    kv_width = HIDDEN // HEADS * KV_HEADS
    shapes = {
        "attn_q": (HIDDEN, HIDDEN),
        "attn_k": (kv_width, HIDDEN),
        "attn_v": (kv_width, HIDDEN),
        "attn_output": (HIDDEN, HIDDEN),
        "ffn_gate": (MLP, HIDDEN),
        "ffn_up": (MLP, HIDDEN),
        "ffn_down": (HIDDEN, MLP),
    }
    matrices = {"token_embd.weight": (len(TOKENS), HIDDEN)}
    vectors = ["output_norm.weight"] + ([extra_tensor] if extra_tensor else [])
    for layer in range(LAYERS):
        matrices |= {f"blk.{layer}.{name}.weight": shape for name, shape in shapes.items()}
        vectors += [f"blk.{layer}.{name}.weight" for name in ("attn_norm", "ffn_norm")]
    for name, shape in matrices.items():
        kind = GGMLQuantizationType.Q4_1
        value = generator.standard_normal(shape).astype(np.float32)
        writer.add_tensor(name, quantize(value, kind), raw_dtype=kind)
    for name in vectors:
        writer.add_tensor(name, generator.standard_normal(HIDDEN).astype(np.float32))
