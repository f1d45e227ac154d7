"""What was found in a head's folder, as `eaglebench heads` shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadTensor:
    """One tensor: where it belongs, and how it is called and stored in the file."""

    place: str
    source: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadReport:
    """A head as it was read.

    Attributes:
        path: its folder.
        form: whose names and fields it uses.
        algorithm: EAGLE (1 and 2) or EAGLE3.
        target: the target it was held against; None where none was named.
        fields: the fields of its config that were read, as they stand or were said otherwise.
        draft_config: those that were said otherwise.
        aux_written: auxiliary layer ids in the config; None where it is silent.
        aux_counting: how those are counted.
        aux_layer_ids: states of the target that are used, in the engine's count; None where the
            target would have to be known.
        vocab_size: ids of the target.
        draft_vocab_size: ids it can propose; None where the target's lm_head is borrowed and the
            target is not known.
        has_id_table: whether `d2t` maps the one to the other.
        feeds_normed: whether the next level gets the state behind the final norm.
        max_positions: positions it was made for; None is no limit.
        window: positions its layer sees, the current one included; None is all.
        rotary: kind and base of its angles, and how many dimensions of a head are turned, in words.
        tensors: its tensors, by place.
        borrowed: places that the target fills, and with what.
        embeddings: whose are used, and how like the target's a head's own are.
        ignored: names in the file that are not needed, and why.
        warnings: what deserves a word.
    """

    path: str
    form: str
    algorithm: str
    target: str | None
    fields: Mapping[str, Any]
    draft_config: Mapping[str, Any]
    aux_written: tuple[int, ...] | None
    aux_counting: str
    aux_layer_ids: tuple[int, ...] | None
    vocab_size: int
    draft_vocab_size: int | None
    has_id_table: bool
    feeds_normed: bool
    max_positions: int | None
    window: int | None
    rotary: str
    tensors: tuple[HeadTensor, ...]
    borrowed: Mapping[str, str]
    embeddings: str
    ignored: Mapping[str, str]
    warnings: tuple[str, ...]
