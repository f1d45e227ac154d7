"""The tensors of a head: their names in all formats, and the shape each must have.

Places are named as SGLang and vLLM name them (`layers.0.*`); `checkpoint.canonical_name` maps the
names of the other projects to these. What a config asks for is required, what it rules out has no
place, so that a flag and a file that contradict each other are refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.aux_layers import count_aux, written_ids
from eaglebench.model.heads.config import HeadConfig
from eaglebench.model.heads.format import Algorithm

LAYER = "layers.0."
EMBEDDING = "embed_tokens.weight"
LM_HEAD = "lm_head.weight"
FINAL_NORM = "norm.weight"
JOINED_NORM = "input_norm.weight"
TABLES = frozenset({"d2t", "t2d"})
IGNORED = {
    f"{LAYER}self_attn.rotary_emb.inv_freq": "not used: computed from the config",
    "verifier_norm.weight": "not used: a copy of the target's",
    "verifier_lm_head.weight": "not used: a copy of the target's",
}

QKV = tuple(f"{LAYER}self_attn.{n}_proj" for n in "qkv")
OUTPUT = f"{LAYER}self_attn.o_proj"
MLP = tuple(f"{LAYER}mlp.{n}_proj" for n in ("gate", "up", "down"))
QUERY_NORM = f"{LAYER}self_attn.q_norm.weight"
KEY_NORM = f"{LAYER}self_attn.k_norm.weight"
_POST_NORM = f"{LAYER}post_attention_layernorm.weight"
_INPUT_NORMS = {f"{LAYER}{n}.weight" for n in ("input_layernorm", "hidden_norm")}
_MATRICES = (*QKV, OUTPUT, *MLP)
_BIASES = frozenset(f"{name}.bias" for name in _MATRICES)
_SIZES = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim"),
    "num_aux_hidden_states",
)
_PLAIN = {torch.float64, torch.float32, torch.bfloat16, torch.float16}
_COMMON = frozenset({f"{name}.weight" for name in _MATRICES} | {_POST_NORM})


@dataclass(frozen=True, slots=True)
class Places:
    """Which tensors a head must have, and which it may have."""

    required: frozenset[str]
    optional: frozenset[str]


def state_norm(index: int) -> str:
    """The norm of one auxiliary state in front of fc."""
    return f"fc_norm.{index}.weight"


def places_of(config: HeadConfig, algorithm: Algorithm) -> Places:
    """The places of a head with this config."""
    optional = _BIASES | {QUERY_NORM, KEY_NORM} | {"fc.bias", EMBEDDING}
    if algorithm is Algorithm.EAGLE:
        return Places(_COMMON | {"fc.weight"}, optional | {LM_HEAD})
    required = _COMMON | _INPUT_NORMS | {FINAL_NORM}
    if config.draft_vocab_size not in {None, config.vocab_size}:
        required |= {LM_HEAD}
    if config.takes_aux:
        required |= {"fc.weight"}
    if config.norms_joined:
        required |= {JOINED_NORM}
    if config.norms_each:
        required |= {state_norm(index) for index in range(count_aux(config))}
    return Places(required, optional | {LM_HEAD} | TABLES)


def check_dtypes(tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights that are no plain floating-point numbers.

    Raises:
        CheckpointError: one is quantised; its scales would be lost.
    """
    for name, tensor in tensors.items():
        if name not in TABLES and tensor.dtype not in _PLAIN:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise CheckpointError(
                f"{name} is stored as {kind}; expected float64, float32, bfloat16 or float16",
                hint="the head is quantised; use the one it was made from",
            )


def check_shapes(
    tensors: Mapping[str, Tensor],
    config: HeadConfig,
    algorithm: Algorithm,
    *,
    num_aux: int,
    target_hidden: int,
) -> None:
    """Hold every matrix and norm against the config and the target.

    Raises:
        CheckpointError: one has another shape; both shapes are named.
    """
    expected = _expected_shapes(config, algorithm, num_aux, target_hidden)
    for name, shape in expected.items():
        if name in tensors and tuple(tensors[name].shape) != shape:
            sizes = ", ".join(f"{size} {getattr(config, size)}" for size in _SIZES)
            raise CheckpointError(
                f"{name} has shape {tuple(tensors[name].shape)}; expected {shape} from {sizes}, "
                f"target hidden {target_hidden} and {num_aux} auxiliary layers "
                f"({', '.join(written_ids(config)) or 'not named'})"
            )
    _check_whole(tensors, [f"{name}.bias" for name in QKV])
    _check_whole(tensors, [QUERY_NORM, KEY_NORM])


def has_bias(tensors: Collection[str], names: Iterable[str]) -> bool:
    """Whether any of these matrices has a bias."""
    return any(f"{name}.bias" in tensors for name in names)


def _check_whole(tensors: Collection[str], names: Sequence[str]) -> None:
    """All of a group or none of it."""
    missing = [name for name in names if name not in tensors]
    if missing and len(missing) < len(names):
        raise CheckpointError(f"the head has some of {', '.join(names)}; missing: {missing[0]}")


def _expected_shapes(
    config: HeadConfig, algorithm: Algorithm, num_aux: int, target_hidden: int
) -> dict[str, tuple[int, ...]]:
    hidden, width, inner = config.hidden_size, config.head_width, config.intermediate_size
    is_eagle3 = algorithm is Algorithm.EAGLE3
    into_layer = 2 * hidden if is_eagle3 else hidden
    joined = num_aux * target_hidden
    attended = config.num_attention_heads * width
    rows = {"q": attended, "k": config.num_kv_heads * width, "v": config.num_kv_heads * width}
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, joined if is_eagle3 else hidden + target_hidden),
        "fc.bias": (hidden,),
        FINAL_NORM: (hidden,),
        JOINED_NORM: (joined,),
        _POST_NORM: (hidden,),
        f"{LAYER}self_attn.o_proj.weight": (hidden, attended),
        f"{LAYER}self_attn.o_proj.bias": (hidden,),
        f"{LAYER}mlp.gate_proj.weight": (inner, hidden),
        f"{LAYER}mlp.up_proj.weight": (inner, hidden),
        f"{LAYER}mlp.down_proj.weight": (hidden, inner),
        f"{LAYER}mlp.gate_proj.bias": (inner,),
        f"{LAYER}mlp.up_proj.bias": (inner,),
        f"{LAYER}mlp.down_proj.bias": (hidden,),
    }
    shapes |= {f"{LAYER}self_attn.{n}_proj.weight": (r, into_layer) for n, r in rows.items()}
    shapes |= {f"{LAYER}self_attn.{n}_proj.bias": (r,) for n, r in rows.items()}
    shapes |= dict.fromkeys(_INPUT_NORMS, (hidden,)) | dict.fromkeys(
        (QUERY_NORM, KEY_NORM), (width,)
    )
    return shapes | {state_norm(index): (target_hidden,) for index in range(num_aux)}
