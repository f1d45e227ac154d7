"""Flags of a config held against the tensors of the file.

Engines make a bias or a norm because a flag says so and leave it as it happens to be in memory where
the file has none, or drop one that no flag announces. Here the two have to agree.
"""

from collections.abc import Collection, Iterator

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.config import SAYS, HeadConfig
from eaglebench.model.heads.format import Algorithm, HeadFormat
from eaglebench.model.heads.places import LM_HEAD, MLP, OUTPUT, QKV, QUERY_NORM, has_bias

OF_EAGLE3 = tuple(name for name, says in SAYS.items() if says.of_eagle3)
"""What an EAGLE-1 head has no place for."""


def check_flags(
    config: HeadConfig, tensors: Collection[str], algorithm: Algorithm, form: HeadFormat
) -> None:
    """Refuse flags that the file, or the kind of head, contradicts.

    Raises:
        CheckpointError: one does; it and what was found are named.
    """
    for name, needed, forbidden in _claims(config, tensors, algorithm, form):
        value = getattr(config, name)
        if value is True and needed is not None and not any(needed):
            raise _contradiction(name, "true", "has none of what it announces")
        if value is False and any(forbidden):
            raise _contradiction(name, "false", "has what it rules out")
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
) -> Iterator[tuple[str, list[bool] | None, list[bool]]]:
    """A flag, what it needs one of when it is true (None: nothing), and what it forbids when false.

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


def _contradiction(name: str, value: str, finding: str) -> CheckpointError:
    other = "false" if value == "true" else "true"
    return CheckpointError(
        f"{name} is {value}, yet the file {finding}",
        hint=f"if the file is right, --draft-config {name}={other} says so",
    )
