"""Reads lines of runs and baselines of schema 1, and of the first form of schema 2, as those of today."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import WINDOW_OFF, EngineKnobs, base_arm
from eaglebench.records.observation import RequestTimes, StepTimes

SCHEMA = 1
_DERIVED = ("accept_hist", "prompt_sha256", "output_sha256")
"""What follows from the other fields of a turn, and is not stored any more."""
_TIMES = {f"t_{each.name}": each.name for each in fields(RequestTimes)}
_KNOBS = tuple(each.name for each in fields(EngineKnobs))
_COUNTERS = tuple(name for name in Counters.names() if name != "turns")
_OF_NOISE = {"pairs": "passes", "pair_sd_ppm": "pass_sd_ppm"}
_STEP_TIMES = tuple(each.name for each in fields(StepTimes))


def names(stored: Sequence[str]) -> list[str]:
    """Fields of a stored line or table by their names of today."""
    is_old = "round" in stored and "pass_index" not in stored
    return ["pass_index" if is_old and name == "round" else name for name in stored]


def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """A stored line with the names of today."""
    return dict(zip(names(list(values)), values.values(), strict=True))


def turn(values: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """A turn with counters, knobs and times in places of their own; what it lacks was not measured.

    `config` is the configuration of its run, for what such a turn leaves to it.
    """
    left = renamed(values)
    for name in _DERIVED:
        left.pop(name, None)
    if "counters" not in left:
        left["counters"] = _taken(left, _COUNTERS)
    if "times" not in left:
        left["times"] = {_TIMES[name]: value for name, value in _taken(left, _TIMES).items()}
    if "knobs" not in left and "page_size" in left:
        left["window"] = left.pop("sliding_window", None)
        left["knobs"] = _knobs(left, config)
    if "measured" in left:
        left["is_measured"] = left.pop("measured")
    if "request_id" not in left and "question_id" in left:
        left["request_id"] = f"{left['question_id']}/{left.get('turn')}"
    return left


def block(values: Mapping[str, Any]) -> dict[str, Any]:
    """A block with its times in a place of their own."""
    left = renamed(values)
    if "times" not in left:
        left["times"] = _taken(left, _STEP_TIMES)
    return left


def baseline_line(values: Any) -> Any:
    """A line of a baseline by the names of today."""
    if not isinstance(values, dict):
        return values
    left = {_OF_NOISE.get(name, name): value for name, value in values.items()}
    if isinstance(left.get("untrusted"), list):
        left["untrusted"] = ["passes" if kind == "rounds" else kind for kind in left["untrusted"]]
    return left


def _knobs(left: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Knobs of a turn; those that were not axes of every run stand in the configuration.

    The window is what was seen, since the line does not say whether it was the model's own.
    """
    window = left["window"]
    aim = re.search(rf"-{left.get('preallocation')}(\d+)", str(left.get("cell_id")))
    of_run = {name: config[name] for name in _KNOBS if _is_scalar(config.get(name))}
    return {
        **of_run,
        **({"preallocate_tokens": int(aim[1])} if aim else {}),
        **_taken(left, [name for name in _KNOBS if name != "arm"]),
        "arm": base_arm(str(left.get("arm"))),
        "sliding_window": WINDOW_OFF if window is None else window,
    }


def _is_scalar(value: object) -> bool:
    return isinstance(value, int | float | str)


def _taken(left: dict[str, Any], wanted: Sequence[str] | Mapping[str, str]) -> dict[str, Any]:
    """Fields taken out of a line."""
    return {name: left.pop(name) for name in list(wanted) if name in left}
