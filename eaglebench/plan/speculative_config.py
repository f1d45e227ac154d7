"""vLLM's `--speculative-config '{...}'` as the options that it stands for."""

import json
from collections.abc import Mapping
from typing import Any

from eaglebench.errors import UsageError
from eaglebench.plan.explain import unknown_name
from eaglebench.records.flags import flag_of

NAME = "speculative_config"
KEYS = {
    "method": "algorithm",
    "model": "draft_model",
    "num_speculative_tokens": "num_speculative_tokens",
    "draft_sample_method": "sampling_rule",
}
"""Its keys, and the options they are."""
_METHODS = {"eagle": "EAGLE", "eagle3": "EAGLE3"}
_SAMPLING = {"greedy": "target-only", "probabilistic": "draft-distribution"}
_ONE_DEVICE = "draft_tensor_parallel_size"
_EXAMPLE = '\'{"method": "eagle3", "model": "HEAD", "num_speculative_tokens": 3}\''


def stood_for(value: str | Mapping[str, Any]) -> dict[str, Any]:
    """Options by name.

    Args:
        value: the JSON that was typed, or the same out of a file.

    Raises:
        UsageError: it is no JSON object, or holds what has no counterpart here.
    """
    said = _object(value)
    if said.pop(_ONE_DEVICE, 1) != 1:
        raise UsageError(f"{flag_of(NAME)}: {_ONE_DEVICE} is more than 1; one device is used here")
    for key in said:
        if key not in KEYS:
            raise UsageError(
                f"{flag_of(NAME)}: {unknown_name(key, list(KEYS))}",
                hint=f"{', '.join(KEYS)} are taken, such as {_EXAMPLE}",
            )
    named = {KEYS[key]: each for key, each in said.items() if each is not None}
    if "algorithm" in named:
        named["algorithm"] = _word("method", named["algorithm"], _METHODS)
    if "sampling_rule" in named:
        named["sampling_rule"] = _word("draft_sample_method", named["sampling_rule"], _SAMPLING)
    if "num_speculative_tokens" in named:
        named["num_speculative_tokens"] = (named["num_speculative_tokens"],)
    return named


def expanded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options that were given, with those in the place of `speculative_config` that it stands for.

    Raises:
        UsageError: one is given beside it, with another value; or it can't be taken.
    """
    if NAME not in given:
        return dict(given)
    named = stood_for(given[NAME])
    for name, value in named.items():
        if given.get(name, value) != value:
            raise UsageError(
                f"{flag_of(name)} and {flag_of(NAME)} contradict each other", hint="leave one out"
            )
    return {**{name: value for name, value in given.items() if name != NAME}, **named}


def _object(value: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    try:
        said = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{flag_of(NAME)} is no JSON: {error}", hint=f"in quotes, such as {_EXAMPLE}"
        ) from error
    if not isinstance(said, dict):
        raise UsageError(f"{flag_of(NAME)}: expected a JSON object, such as {_EXAMPLE}")
    return said


def _word(key: str, value: Any, words: Mapping[str, str]) -> str:
    if not isinstance(value, str) or value not in words:
        raise UsageError(f"{flag_of(NAME)}: {key} is {value!r}; expected {' or '.join(words)}")
    return words[value]
