"""Several heads, targets, temperatures: what was given once for each of them.

A setup is a run of its own. Targets and heads that are both several go in pairs, since a head
belongs to a target; everything else is combined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from eaglebench.errors import UsageError
from eaglebench.plan.options import all_options
from eaglebench.records.flags import flag_of
from eaglebench.records.models import DEFAULT_BACKEND

_PAIRED = ("model", "draft_model")
OUTSIDE = ("engine_python", "engine_args")
"""Options of engines that run under a python of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupChoice:
    """The options of one run, and those among them that have another value in the next one."""

    given: Mapping[str, Any]
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return ", ".join(f"{flag_of(n)} {_text(value)}" for n, value in self.values.items())


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def several(given: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """The options that were given several values where a run has one."""
    many = (name for name, option in all_options().items() if option.is_many)
    return {n: given[n] for n in many if isinstance(given.get(n), list | tuple)}


def split_setups(given: Mapping[str, Any]) -> list[SetupChoice]:
    """The options of each run; of one alone where nothing has several values.

    Raises:
        UsageError: there are several targets and another number of heads.
    """
    lists = several(given)
    paired = {name: lists.pop(name) for name in _PAIRED if name in lists}
    if len({len(values) for values in paired.values()}) > 1:
        counts = " and ".join(f"{len(v)} of {flag_of(name)}" for name, v in paired.items())
        raise UsageError(
            f"{counts} can't be put in pairs", hint="name a head for each target, in their order"
        )
    groups = [[{name: value} for value in values] for name, values in lists.items()]
    if paired:
        groups.insert(
            0, [dict(zip(paired, v, strict=True)) for v in zip(*paired.values(), strict=True)]
        )
    combined = [
        {name: value for part in parts for name, value in part.items()}
        for parts in product(*groups)
    ]
    return [SetupChoice(given=_own(given, values), values=values) for values in combined]


def _own(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one of the runs; those of engines outside are not for the one inside."""
    is_inside = values.get("backend") == DEFAULT_BACKEND
    kept = {n: v for n, v in given.items() if not (is_inside and n in OUTSIDE)}
    return {**kept, **values}


def refuse_several(given: Mapping[str, Any]) -> None:
    """Refuse several values where there is one run.

    Raises:
        UsageError: names the options.
    """
    if lists := several(given):
        names = ", ".join(
            f"{flag_of(name)} has {len(values)} values" for name, values in lists.items()
        )
        raise UsageError(f"{names}, and one run has one", hint="eaglebench run takes several")
