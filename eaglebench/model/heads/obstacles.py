"""What a head is or has that a format has no word for."""

from eaglebench.model.heads.aux_layers import AuxLayers, count_aux, usual_layers
from eaglebench.model.heads.config import DEFAULT_NUM_AUX
from eaglebench.model.heads.format import Algorithm, HeadFormat
from eaglebench.model.heads.places import LM_HEAD, MLP, OUTPUT, QKV, QUERY_NORM, has_bias
from eaglebench.model.heads.published import PublishedHead


def head_obstacles(head: PublishedHead, to: HeadFormat) -> list[str]:
    """What the head is or has that the format has no word for."""
    config, tensors = head.config, head.placed.tensors
    is_eagle3 = head.algorithm is Algorithm.EAGLE3
    is_trainer, is_speculators = to is HeadFormat.SAFEAILAB, to is HeadFormat.SPECULATORS
    has_qkv_bias, has_output_bias = has_bias(tensors, QKV), has_bias(tensors, [OUTPUT])
    has_mlp_bias = has_bias(tensors, MLP)
    has_head_norms = QUERY_NORM in tensors
    found = {
        "an lm_head of its own": not is_eagle3 and LM_HEAD in tensors,
        "an lm_head that is the target's": is_eagle3
        and LM_HEAD not in tensors
        and to is not HeadFormat.SGLANG,
        "a bias of fc": is_eagle3 and "fc.bias" in tensors and to is not HeadFormat.SGLANG,
        "biases of q, k and v": has_qkv_bias and is_eagle3 and to is HeadFormat.SGLANG,
        "a bias of o": has_output_bias and is_trainer,
        "biases in the MLP": has_mlp_bias and (not is_speculators or has_head_norms),
        "norms of q and k": has_head_norms and not (is_speculators and is_eagle3),
        "a sliding window": config.window is not None and not is_speculators,
        "partial rotation (partial_rotary_factor)": config.rotated_width != config.head_width
        and to is not HeadFormat.SGLANG,
        "features without auxiliary layers": is_eagle3
        and not config.takes_aux
        and to is not HeadFormat.SGLANG,
        "norm_before_residual": is_eagle3
        and bool(config.norm_before_residual)
        and not is_speculators,
        "norm_before_fc": is_eagle3 and config.norms_joined and is_trainer,
        "fc_norm": is_eagle3 and config.norms_each and is_trainer,
        "norm_output": head.feeds_normed and is_trainer,
    }
    return [text for text, is_one in found.items() if is_one]


def old_readers(head: PublishedHead, to: HeadFormat) -> tuple[str, ...]:
    """Versions of engines that read the format and would run another head without a word."""
    config = head.config
    if to is not HeadFormat.SGLANG or head.algorithm is not Algorithm.EAGLE3:
        return ()
    ignored = {
        "norm_output": head.feeds_normed,
        "norm_before_fc": config.norms_joined,
        "fc_norm": config.norms_each,
        "num_aux_hidden_states": count_aux(config) != DEFAULT_NUM_AUX,
        "use_aux_hidden_state": not config.takes_aux,
    }
    found = [name for name, is_asked in ignored.items() if is_asked]
    if not found:
        return ()
    return (f"SGLang 0.5.4 ignores {', '.join(found)} and would run another head; use a later one",)


def aux_obstacles(aux: AuxLayers, to: HeadFormat, num_layers: int | None) -> list[str]:
    """Ids that the format can't hold."""
    if aux.ids is None:
        return []
    if to is HeadFormat.SGLANG and 0 in aux.ids:
        return ["the embeddings (auxiliary layer 0) as features"]
    if to is not HeadFormat.SAFEAILAB:
        return []
    if num_layers is None:
        return [f"auxiliary layers {aux.ids}, unless they are the default: name the target"]
    usual = usual_layers(num_layers)
    return [] if aux.ids == usual else [f"auxiliary layers {aux.ids} instead of {usual}"]
