"""The tensors of a head: their names in all formats, the shape each must have, and what flags say.

Places are named as SGLang and vLLM name them (`layers.0.*`); `checkpoint.canonical_name` maps the
names of the other projects to these. What a config asks for is required, what it rules out has no
place, so that a flag and a file that contradict each other are refused. Engines make a bias or a norm
because a flag says so and leave it as it happens to be in memory where the file has none, or drop one
that no flag announces; here the two have to agree.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.aux_layers import count_aux, written_ids
from eaglebench.model.heads.config import SAYS, HeadConfig
from eaglebench.model.heads.format import Algorithm, HeadFormat

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
OF_EAGLE3 = tuple(name for name, says in SAYS.items() if says.of_eagle3)
"""What an EAGLE-1 head has no place for."""


def state_norm(index: int) -> str:
    """The norm of one auxiliary state in front of fc."""
    return f"fc_norm.{index}.weight"


def places_of(config: HeadConfig, algorithm: Algorithm) -> tuple[frozenset[str], frozenset[str]]:
    """The places that a head with this config must fill, and those that it may."""
    optional = _BIASES | {QUERY_NORM, KEY_NORM} | {"fc.bias", EMBEDDING}
    if algorithm is Algorithm.EAGLE:
        return _COMMON | {"fc.weight"}, optional | {LM_HEAD}
    required = _COMMON | _INPUT_NORMS | {FINAL_NORM}
    if config.draft_vocab_size not in {None, config.vocab_size}:
        required |= {LM_HEAD}
    if config.takes_aux:
        required |= {"fc.weight"}
    if config.norms_joined:
        required |= {JOINED_NORM}
    if config.norms_each:
        required |= {state_norm(index) for index in range(count_aux(config))}
    return required, optional | {LM_HEAD} | TABLES


def check_dtypes(tensors: Mapping[str, Tensor]) -> None:
    """Refuse, as a CheckpointError, quantised weights, whose scales would be lost."""
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
    """Hold every matrix and norm against config and target; a CheckpointError names both shapes."""
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
    attended, stored = config.num_attention_heads * width, config.num_kv_heads * width
    query, key, value = QKV
    gate, up, down = MLP
    matrices = {
        "fc": (hidden, joined if is_eagle3 else hidden + target_hidden),
        query: (attended, into_layer),
        **dict.fromkeys((key, value), (stored, into_layer)),
        OUTPUT: (hidden, attended),
        **dict.fromkeys((gate, up), (inner, hidden)),
        down: (hidden, inner),
    }
    vectors = {
        **dict.fromkeys((FINAL_NORM, _POST_NORM, *_INPUT_NORMS), hidden),
        **dict.fromkeys((QUERY_NORM, KEY_NORM), width),
        JOINED_NORM: joined,
        **{state_norm(index): target_hidden for index in range(num_aux)},
        **{f"{name}.bias": rows for name, (rows, _) in matrices.items()},
    }
    shapes: dict[str, tuple[int, ...]] = {f"{n}.weight": size for n, size in matrices.items()}
    return shapes | {name: (size,) for name, size in vectors.items()}


def check_flags(
    config: HeadConfig, tensors: Collection[str], algorithm: Algorithm, form: HeadFormat
) -> None:
    """Refuse, as a CheckpointError, flags that the file, or the kind of head, contradicts."""
    for name, needed, forbidden in _claims(config, tensors, algorithm, form):
        value, finding = getattr(config, name), None
        if value is True and not any(needed):
            finding = "has none of what it announces"
        if value is False and any(forbidden):
            finding = "has what it rules out"
        if finding:
            words = {True: "true", False: "false"}
            raise CheckpointError(
                f"{name} is {words[value]}, yet the file {finding}",
                hint=f"if the file is right, --draft-config {name}={words[not value]} says so",
            )
    if algorithm is Algorithm.EAGLE:
        _check_eagle1(config)


def _check_eagle1(config: HeadConfig) -> None:
    """Nothing that only EAGLE-3 heads have."""
    for name in OF_EAGLE3:
        if getattr(config, name):
            raise CheckpointError(f"{name} is set, and an EAGLE-1 head has no such thing")
    if config.draft_vocab_size not in {None, config.vocab_size}:
        raise CheckpointError(
            f"draft_vocab_size is {config.draft_vocab_size}, vocab_size {config.vocab_size}; an "
            "EAGLE-1 head has no reduced vocabulary"
        )
    if "use_aux_hidden_state" in config.eagle_config.model_fields_set and config.takes_aux:
        raise CheckpointError("use_aux_hidden_state is true, and an EAGLE-1 head has no such thing")


def _claims(
    config: HeadConfig, tensors: Collection[str], algorithm: Algorithm, form: HeadFormat
) -> Iterator[tuple[str, list[bool], list[bool]]]:
    """A flag, what it needs one of when it is true, and what it forbids when false.

    `bias` is the bias of fc in most projects and that of attention in vLLM's EAGLE-3; SGLang gives
    fc of an EAGLE-1 head a bias whatever it says.
    """
    qkv, output = has_bias(tensors, QKV), has_bias(tensors, [OUTPUT])
    fusion, mlp = "fc.bias" in tensors, has_bias(tensors, MLP)
    is_sglang1 = algorithm is Algorithm.EAGLE and form is HeadFormat.SGLANG
    yield "bias", [fusion, qkv, output], [fusion and not is_sglang1]
    yield "fusion_bias", [fusion], [fusion]
    yield "attention_bias", [qkv, output], [qkv and not config.qkv_bias, output and not config.bias]
    yield "qkv_bias", [qkv], [qkv]
    yield "mlp_bias", [mlp], [mlp]
    yield "use_qk_norm", [QUERY_NORM in tensors], [QUERY_NORM in tensors]
    yield "has_lm_head", [LM_HEAD in tensors], []
