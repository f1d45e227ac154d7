"""Which hidden states of the target feed a head, and the off-by-one between projects.

Our id k is the state that enters decoder layer k: the state after k layers. With n layers, n is
the state after the last one and n + 1 the one behind the final norm (`Target.forward`).

| who wrote the ids                        | written | ours  |
|------------------------------------------|---------|-------|
| vLLM, speculators: state after k layers  | k       | k     |
| SGLang, SpecForge: output of layer k     | k       | k + 1 |
| SafeAILab: nothing, all take the default | -       | 2, n // 2, n - 3 |

The default is the same in all of them. SpecForge writes it as 1, n // 2 - 1, n - 4. vLLM looks for
the ids at the top level of the config first, SGLang only in `eagle_config`; so ids at the top level
are vLLM's, and ids in `eagle_config` alone are SGLang's unless the file is of vLLM or speculators.

Two kinds of nested ids can't be meant as SGLang counts and are taken as they stand, with a warning:
those that hold n, as SGLang itself takes them for gpt-oss, and those that equal the default. Others
are shifted; unless that gives the default, there is a warning as well. Ids that the user gives
(`--aux-layer-ids`) are ours and overrule the config.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.config import HeadConfig
from eaglebench.model.heads.format import Algorithm, HeadFormat

_STATE_AFTER = "id k is the state after k layers"
GIVEN = f"given with --aux-layer-ids: {_STATE_AFTER}"
AT_THE_TOP = f"at the top level of config.json, so as vllm counts: {_STATE_AFTER}"
OF_VLLM = f"in eagle_config of a file for vllm or speculators, so as they count: {_STATE_AFTER}"
COUNTED_AS_OUTPUT = (
    "in eagle_config alone, so as sglang counts: id k is the output of layer k, the state after "
    "k + 1 layers"
)
AS_IT_STANDS = f"in eagle_config, yet as vllm counts: {_STATE_AFTER}"
BY_DEFAULT = "no ids: the default 2, n // 2, n - 3 of a target with n layers"
LAST_STATE = "no auxiliary layers: the state behind the target's final norm"
OVERRULE = "--aux-layer-ids says otherwise"
_VLLM_NAMES = {"Eagle3LlamaForCausalLM", "Eagle3Speculator", "Eagle3DraftModel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxLayers:
    """Auxiliary layers before and after conversion.

    Attributes:
        written: the ids in the config; None where it is silent.
        counting: where the ids in use come from and how they are counted, in words.
        ids: as `Target.forward` takes them; None where the target would have to be known.
        warning: what deserves a word.
    """

    written: tuple[int, ...] | None
    counting: str
    ids: tuple[int, ...] | None
    warning: str | None = None


def resolve_aux_layers(
    config: HeadConfig,
    algorithm: Algorithm,
    form: HeadFormat,
    num_layers: int | None,
    given: Sequence[int] | None = None,
) -> AuxLayers:
    """The states that feed a head.

    Args:
        config: the head's.
        algorithm: the kind of maths.
        form: whose words the config uses.
        num_layers: the target's; None where it is not known.
        given: ids of the user's, which overrule the config.

    Raises:
        CheckpointError: two places of the config contradict each other, the ids can't feed this
            head, or the target does not have such layers.
    """
    if algorithm is Algorithm.EAGLE or not config.takes_aux:
        if given is not None:
            raise CheckpointError(
                "--aux-layer-ids is given, but the head has no auxiliary layers: it takes the "
                "state behind the target's final norm"
            )
        ids = None if num_layers is None else (num_layers + 1,)
        return AuxLayers(written=None, counting=LAST_STATE, ids=ids)
    found = _found(config, form, num_layers, given)
    if found.ids is not None:
        _check_order(found.ids, config.num_aux_hidden_states)
        if num_layers is not None:
            _check_range(found.ids, num_layers)
    return found


def count_as_output(ids: Sequence[int]) -> tuple[int, ...]:
    """Our ids as SGLang and SpecForge count.

    Raises:
        CheckpointError: id 0, the embeddings, is the output of no layer.
    """
    if 0 in ids:
        raise CheckpointError(
            f"auxiliary layers {tuple(ids)}: 0 is the embeddings, which are the output of no layer",
            hint="only vLLM and speculators can name them",
        )
    return tuple(index - 1 for index in ids)


def usual_layers(num_layers: int) -> tuple[int, int, int]:
    """What the default comes to, whether or not the target is deep enough for it."""
    return (2, num_layers // 2, num_layers - 3)


def default_aux_layer_ids(num_layers: int) -> tuple[int, ...]:
    """The layers every published engine takes when the config is silent: (2, n // 2, n - 3).

    Raises:
        CheckpointError: the target is too shallow for three different layers.
    """
    ids = usual_layers(num_layers)
    if list(ids) != sorted(set(ids)) or ids[0] < 0:
        raise CheckpointError(
            f"the default auxiliary layers of a target with {num_layers} layers are {ids}, "
            "which are not three different layers in order",
            hint="name the layers that the head was trained on with --aux-layer-ids, or as "
            "eagle_aux_hidden_state_layer_ids in its config.json",
        )
    return ids


def _found(
    config: HeadConfig, form: HeadFormat, num_layers: int | None, given: Sequence[int] | None
) -> AuxLayers:
    outer = tuple(config.eagle_aux_hidden_state_layer_ids or ())
    nested = tuple(config.eagle_config.eagle_aux_hidden_state_layer_ids or ())
    if given is not None:
        return AuxLayers(written=outer or nested or None, counting=GIVEN, ids=tuple(given))
    if outer:
        _check_agreement(outer, nested)
        return AuxLayers(written=outer, counting=AT_THE_TOP, ids=outer)
    if nested:
        return _nested(nested, config, form, num_layers)
    if num_layers is None:
        return AuxLayers(written=None, counting=BY_DEFAULT, ids=None)
    ids = default_aux_layer_ids(num_layers)
    warning = f"the config names no auxiliary layers; {ids} are used unless {OVERRULE}"
    return AuxLayers(written=None, counting=BY_DEFAULT, ids=ids, warning=warning)


def _nested(
    ids: tuple[int, ...], config: HeadConfig, form: HeadFormat, num_layers: int | None
) -> AuxLayers:
    if form is HeadFormat.SPECULATORS or _VLLM_NAMES.intersection(config.architectures or ()):
        return AuxLayers(written=ids, counting=OF_VLLM, ids=ids)
    shifted = tuple(index + 1 for index in ids)
    if num_layers is None or shifted == usual_layers(num_layers):
        return AuxLayers(written=ids, counting=COUNTED_AS_OUTPUT, ids=shifted)
    if num_layers in ids or ids == usual_layers(num_layers):
        warning = (
            f"auxiliary layers {ids} in eagle_config are taken as they stand; as SGLang counts "
            f"they would be {shifted}, if {OVERRULE}"
        )
        return AuxLayers(written=ids, counting=AS_IT_STANDS, ids=ids, warning=warning)
    warning = (
        f"auxiliary layers {ids} in eagle_config are the states {shifted} as SGLang counts, unless "
        f"{OVERRULE}"
    )
    return AuxLayers(written=ids, counting=COUNTED_AS_OUTPUT, ids=shifted, warning=warning)


def _check_agreement(outer: tuple[int, ...], nested: tuple[int, ...]) -> None:
    shifted = tuple(index + 1 for index in nested)
    if nested and outer not in {nested, shifted}:
        raise CheckpointError(
            f"eagle_aux_hidden_state_layer_ids is {outer} at the top level and {nested} in "
            f"eagle_config, which is {shifted} as SGLang counts: the two don't agree",
            hint="say which with --aux-layer-ids, or keep one of them",
        )


def _check_order(ids: tuple[int, ...], num_aux: int | None) -> None:
    """Engines gather states while the target runs: each once, from the first layer to the last."""
    if list(ids) != sorted(set(ids)):
        raise CheckpointError(
            f"auxiliary layers {ids} are not different layers in order, in which engines take them"
        )
    if num_aux is not None and num_aux != len(ids):
        raise CheckpointError(
            f"the config says num_aux_hidden_states {num_aux}, its auxiliary layers are {ids}"
        )


def _check_range(ids: tuple[int, ...], num_layers: int) -> None:
    for index in ids:
        if not 0 <= index <= num_layers:
            raise CheckpointError(
                f"auxiliary layer {index} asks for a state that the target does not have; its "
                f"layers are 0 .. {num_layers - 1}, and {num_layers} is the state after the last"
            )
