"""Which hidden states of the target feed a head, and the off-by-one between projects.

Our id k is the state that enters decoder layer k: the state after k layers. With n layers, n is
the state after the last one and n + 1 the one behind the final norm (`Target.forward`).

| who wrote the ids, and as what                                     | written | ours  |
|--------------------------------------------------------------------|---------|-------|
| vLLM, speculators: state after k layers;                           | k       | k     |
|   `eagle_aux_hidden_state_layer_ids`, `aux_hidden_state_layer_ids` |         |       |
| SGLang, SpecForge, ModelOpt: output of layer k;                    | k       | k + 1 |
|   `eagle_config.eagle_aux_hidden_state_layer_ids`                  |         |       |
| TorchSpec, AngelSlim and others by the words of their trainers:    | k       | k + 1 |
|   output of layer k; `aux_hidden_states_layers`, `target_layer_ids` |        |       |
| SafeAILab: nothing, all take the default                           | -       | 2, n // 2, n - 3 |

The default is the same in all of them. SpecForge writes it as 1, n // 2 - 1, n - 4. vLLM looks for
the ids at the top level of the config first, SGLang only in `eagle_config`; so ids at the top level
are vLLM's, and ids in `eagle_config` alone are SGLang's unless the file is of vLLM or speculators.
A field that seems to name layers in other words is refused (`fields.py`): its count would be a guess.

Two kinds of nested ids can't be meant as SGLang counts and are taken as they stand, with a warning:
those that hold n, as SGLang itself takes them for gpt-oss, and those that equal the default. Others
are shifted; unless that gives the default, there is a warning as well. Ids that the user gives
(`--aux-layer-ids`) are ours and overrule the config.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.config import DEFAULT_NUM_AUX, HeadConfig
from eaglebench.model.heads.format import Algorithm, HeadFormat

_STATE_AFTER = "id k is the state after k layers"
GIVEN = f"given with --aux-layer-ids: {_STATE_AFTER}"
AT_THE_TOP = f"at the top level of config.json, so as vllm counts: {_STATE_AFTER}"
OF_VLLM = f"in eagle_config of a file for vllm or speculators, so as they count: {_STATE_AFTER}"
COUNTED_AS_OUTPUT = (
    "in eagle_config alone, so as sglang counts: id k is the output of layer k, the state after "
    "k + 1 layers"
)
BY_TRAINERS = "as trainers count: id k is the output of layer k, the state after k + 1 layers"
AS_IT_STANDS = f"in eagle_config, yet as vllm counts: {_STATE_AFTER}"
BY_DEFAULT = "no ids: the default 2, n // 2, n - 3 of a target with n layers"
LAST_STATE = "no auxiliary layers: the state behind the target's final norm"
OPTION = "--aux-layer-ids"
OVERRULE = f"{OPTION} says otherwise"
FIELD = "eagle_aux_hidden_state_layer_ids"
_VLLM_NAMES = {"Eagle3LlamaForCausalLM", "Eagle3Speculator", "Eagle3DraftModel"}
_OF_STATES = (FIELD, "aux_hidden_state_layer_ids")
_OF_OUTPUTS = ("target_layer_ids", "aux_hidden_states_layers")
_GPT_OSS = (1, 17, 32)
"""Ids that SGLang counts as outputs since its #32334, and vLLM as states."""


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
    """The states that feed a head of a target with `num_layers` (None where that is not known).

    Ids that are `given` overrule the config.

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
        _check_none(config, algorithm)
        ids = None if num_layers is None else (num_layers + 1,)
        return AuxLayers(written=None, counting=LAST_STATE, ids=ids)
    written = written_ids(config)
    if given is not None:
        first = next(iter(written.values()), None)
        found = AuxLayers(written=first, counting=GIVEN, ids=tuple(given))
    else:
        found = _read(written, config, form, num_layers)
        _check_agreement(found, written)
    if found.ids is not None:
        where = OPTION if given is not None else next(iter(written), "by default")
        _check_ids(found.ids, where, config.num_aux_hidden_states, num_layers)
    return found


def count_as_output(ids: Sequence[int]) -> tuple[int, ...]:
    """Our ids as SGLang and SpecForge count; a CheckpointError for 0, the output of no layer."""
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


def written_ids(config: HeadConfig) -> dict[str, tuple[int, ...]]:
    """Every place of the config that names layers, by the field; those at the top level come first."""
    places = [(name, getattr(config, name)) for name in (*_OF_STATES, *_OF_OUTPUTS)]
    block = config.eagle_config
    places += [(f"eagle_config.{name}", getattr(block, name)) for name in (FIELD, *_OF_OUTPUTS)]
    return {name: tuple(ids) for name, ids in places if ids}


def count_aux(config: HeadConfig) -> int:
    """States that make up the features, as far as the config alone says."""
    if not config.takes_aux:
        return 1
    written = next(iter(written_ids(config).values()), ())
    return config.num_aux_hidden_states or len(written) or DEFAULT_NUM_AUX


def _read(
    written: dict[str, tuple[int, ...]],
    config: HeadConfig,
    form: HeadFormat,
    num_layers: int | None,
) -> AuxLayers:
    """The first place that names layers, as its writer counts."""
    if not written:
        return _default(num_layers)
    name, ids = next(iter(written.items()))
    shifted = _shifted(ids)
    usual = None if num_layers is None else usual_layers(num_layers)
    counting, used, warning = COUNTED_AS_OUTPUT, shifted, None
    if name in _OF_STATES:
        counting, used = AT_THE_TOP, ids
    elif not name.endswith(FIELD):
        counting = f"in {name}, so {BY_TRAINERS}"
        if shifted != usual:
            warning = f"in {name} are the states {shifted} as trainers count, unless {OVERRULE}"
    elif form is HeadFormat.SPECULATORS or _VLLM_NAMES.intersection(config.architectures or ()):
        counting, used = OF_VLLM, ids
    elif usual is None or shifted == usual:
        pass
    elif num_layers in ids or ids == usual:
        counting, used = AS_IT_STANDS, ids
        warning = (
            f"in eagle_config are taken as they stand; as SGLang counts they would be {shifted}, "
            f"if {OVERRULE}"
        )
    else:
        warning = f"in eagle_config are the states {shifted} as SGLang counts, unless {OVERRULE}"
    if warning:
        warning = f"auxiliary layers {ids} {warning}"
    if _GPT_OSS in written.values() and num_layers in {None, 36}:
        warning = (
            f"auxiliary layers {_GPT_OSS}, as heads for gpt-oss have them, are counted in two ways: "
            f"vLLM takes the states {_GPT_OSS}, SGLang since its #32334 {_shifted(_GPT_OSS)}; {used} "
            f"are used unless {OVERRULE}"
        )
    return AuxLayers(written=ids, counting=counting, ids=used, warning=warning)


def _default(num_layers: int | None) -> AuxLayers:
    if num_layers is None:
        return AuxLayers(written=None, counting=BY_DEFAULT, ids=None)
    ids = default_aux_layer_ids(num_layers)
    warning = f"the config names no auxiliary layers; {ids} are used unless {OVERRULE}"
    return AuxLayers(written=None, counting=BY_DEFAULT, ids=ids, warning=warning)


def _shifted(ids: Sequence[int]) -> tuple[int, ...]:
    """Outputs of layers as states."""
    return tuple(index + 1 for index in ids)


def _check_agreement(found: AuxLayers, written: dict[str, tuple[int, ...]]) -> None:
    """Every place has to name the states that are used; nested ids of vLLM's may, as they stand."""
    for name, ids in written.items():
        readings = {ids} if name in _OF_STATES else {_shifted(ids)}
        if name == f"eagle_config.{FIELD}":
            readings |= {ids}
        if found.ids not in readings:
            first = next(iter(written))
            raise CheckpointError(
                f"{first} is {written[first]}, which are the states {found.ids}, and {name} is "
                f"{ids}, which is {_shifted(ids)} as SGLang counts: the two don't agree",
                hint="say which with --aux-layer-ids, or keep one of them",
            )


def _check_none(config: HeadConfig, algorithm: Algorithm) -> None:
    """A head without auxiliary layers must not name any."""
    kind = "of EAGLE-1" if algorithm is Algorithm.EAGLE else "with use_aux_hidden_state false"
    said = {**written_ids(config), "num_aux_hidden_states": config.num_aux_hidden_states}
    for name, value in said.items():
        if value is not None:
            raise CheckpointError(f"{name} is {value}, but a head {kind} has no auxiliary layers")


def _check_ids(
    ids: tuple[int, ...], where: str, num_aux: int | None, num_layers: int | None
) -> None:
    """Engines gather states while the target runs: each once, from the first layer to the last."""
    if list(ids) != sorted(set(ids)):
        raise CheckpointError(
            f"auxiliary layers {ids} ({where}) are not different layers in order, in which engines "
            "take them"
        )
    if num_aux is not None and num_aux != len(ids):
        raise CheckpointError(
            f"the config says num_aux_hidden_states {num_aux}, its auxiliary layers are {ids} "
            f"({where})"
        )
    beyond = [index for index in ids if num_layers is not None and not 0 <= index <= num_layers]
    if beyond and num_layers is not None:
        raise CheckpointError(
            f"auxiliary layer {beyond[0]} asks for a state that the target does not have; its "
            f"layers are 0 .. {num_layers - 1}, and {num_layers} is the state after the last one "
            f"({where} says {ids})"
        )
