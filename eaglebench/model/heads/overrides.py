"""Fields of a head's config that the user says otherwise (`--draft-config KEY=VALUE`).

A field is replaced wherever the config says it: at the top level, in the nested layer config and in
`eagle_config`, under any of its names. Three of them stand for a group, so that what is asked for is
what happens: `sliding_window` decides alone whether the layer slides, and the rotary base, share and
scaling are taken out of the other spelling as well.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from eaglebench.errors import UsageError
from eaglebench.model.heads.config import BLOCK, NESTED, SAYS
from eaglebench.model.heads.fields import HARMLESS

OPTION = "--draft-config"
_SHARE, _DIMENSIONS = "partial_rotary_factor", "rotary_dim"
_SCALING = ("rope_parameters", "rope_scaling")
SETTABLE = sorted(
    [name for name, says in SAYS.items() if not (says.is_fixed or says.is_counted)]
    + ["use_aux_hidden_state"]
)
"""Fields that can be said otherwise."""


def overridden(raw: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A config with some fields replaced; null takes a field out.

    Raises:
        UsageError: a field is not known, or does nothing.
    """
    config = {name: _copied(value) for name, value in raw.items()}
    blocks = [
        config,
        *(config[name] for name in (NESTED, BLOCK) if isinstance(config.get(name), dict)),
    ]
    for name, value in changes.items():
        _check_name(name, value, blocks)
        _drop(blocks, _words(name))
        if name == "sliding_window":
            _slide(blocks, value, changes)
        if name in {"rope_theta", _SHARE, _DIMENSIONS}:
            _out_of_scaling(blocks, name)
        if name in _SCALING:
            _keep_unscaled(blocks, name, changes)
        if value is not None:
            _home(config, name)[name] = _copied(value)
    return config


def say(changes: Mapping[str, Any]) -> str:
    """What a run says of a head that is not computed as its file has it."""
    said = ", ".join(f"{name} {json.dumps(value)}" for name, value in changes.items())
    return f"the head's config is said otherwise ({OPTION}): {said}"


def check_effect(changes: Mapping[str, Any], unused: Iterable[str], kind: str) -> None:
    """Refuse, as a UsageError, what this kind of head does not ask its config for."""
    for name in unused:
        if name in changes:
            raise UsageError(f"{OPTION} {name}: {kind} head has no such thing, so it does nothing")


def _check_name(name: str, value: Any, blocks: list[dict[str, Any]]) -> None:
    if name in SAYS and SAYS[name].is_counted and value is not None:
        raise UsageError(
            f"{OPTION} {name}: how ids are counted differs between projects",
            hint="say which states feed the head with --aux-layer-ids",
        )
    if name in SETTABLE:
        return
    if value is None and name not in HARMLESS and any(name in block for block in blocks):
        return  # takes out ids, or a field that is not known here
    raise UsageError(
        f"{OPTION} {name}: not a field of a head's config that is read here",
        hint=f"known: {', '.join(SETTABLE)}",
    )


def _copied(value: Any) -> Any:
    """A block and the blocks within it are changed here; what lies deeper is not."""
    if not isinstance(value, dict):
        return value
    return {name: dict(each) if isinstance(each, dict) else each for name, each in value.items()}


def _words(name: str) -> list[str]:
    return [name, *(SAYS[name].words if name in SAYS else ())]


def _drop(blocks: Iterable[dict[str, Any]], words: Iterable[str]) -> None:
    for word in words:
        for block in blocks:
            block.pop(word, None)


def _home(config: dict[str, Any], name: str) -> dict[str, Any]:
    """The block a field is said in."""
    if name != "use_aux_hidden_state":
        return config
    if not isinstance(config.get(BLOCK), dict):
        config[BLOCK] = {}
    block: dict[str, Any] = config[BLOCK]
    return block


def _slide(blocks: list[dict[str, Any]], size: Any, changes: Mapping[str, Any]) -> None:
    """A window that is given is one that the layer has."""
    others = ("layer_types", "use_sliding_window", "max_window_layers")
    _drop(blocks, [name for name in others if name not in changes])
    if "layer_types" not in changes:
        blocks[0].setdefault("use_sliding_window", size is not None)


def _out_of_scaling(blocks: list[dict[str, Any]], name: str) -> None:
    """One of the two words for a share is enough, and what stands beside the kind is another one."""
    pair = [_SHARE, _DIMENSIONS]
    if name in pair:
        _drop(blocks, _words(pair[1 - pair.index(name)]))
    words = _words(name) + (_words(_SHARE) if name == _DIMENSIONS else [])
    scalings = [block.get(spelling) for block in blocks for spelling in _SCALING]
    _drop([each for each in scalings if isinstance(each, dict)], words)


def _keep_unscaled(blocks: list[dict[str, Any]], name: str, changes: Mapping[str, Any]) -> None:
    """The other spelling goes; the base and the share that only it said stay."""
    kept: dict[str, Any] = {}
    for block in blocks:
        for spelling in _SCALING:
            if spelling in changes and spelling != name:
                continue
            said = block.pop(spelling, None)
            if isinstance(said, dict):
                kept |= {key: said[key] for key in ("rope_theta", _SHARE) if key in said}
    blocks[0].update({key: value for key, value in kept.items() if key not in changes})
