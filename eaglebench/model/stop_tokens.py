"""End tokens as configs name them: one id, several, or none."""

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel

from eaglebench.errors import CheckpointError


def stop_token_ids(model: PreTrainedModel) -> tuple[int, ...]:
    """End tokens of the generation config and of the config, in order.

    Raises:
        CheckpointError: one is no token id.
    """
    found: set[int] = set()
    for name, source in (
        ("generation_config.json", getattr(model, "generation_config", None)),
        ("config.json", model.config),
        ("config.json", model.config.get_text_config()),
    ):
        found.update(_ids(name, getattr(source, "eos_token_id", None)))
    return tuple(sorted(found))


def stop_token_warnings(ids: Sequence[int], vocab_size: int) -> list[str]:
    """A sentence about end tokens that no position can choose."""
    beyond = [str(each) for each in ids if not 0 <= each < vocab_size]
    if not beyond:
        return []
    names = ", ".join(beyond)
    return [f"end token {names} is outside the target's vocabulary of {vocab_size}: it never comes"]


def _ids(name: str, value: Any) -> list[int]:
    if value is None:
        return []
    ids = list(value) if isinstance(value, list | tuple) else [value]
    for each in ids:
        if isinstance(each, bool) or not isinstance(each, int):
            raise CheckpointError(
                f"{name}: eos_token_id is {value!r}; expected a token id or a list of them"
            )
    return ids
