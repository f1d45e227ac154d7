"""The matrix: every combination of the axes, less the cells that make no sense."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from eaglebench.contracts.knobs import EngineKnobs, Preallocation

AXES = (
    "page_size",
    "chunked_prefill_size",
    "num_steps",
    "eagle_topk",
    "num_draft_tokens",
    "parallel",
    "preallocation",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: a readable id and its knobs (the arm is chosen later)."""

    cell_id: str
    knobs: EngineKnobs


@dataclass(frozen=True, slots=True)
class Skipped:
    """A combination that is not run, and why."""

    cell_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """What runs and what does not."""

    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]


def draft_bound(num_steps: int, topk: int) -> int:
    """Most draft tokens a tree can have, the root included: 1 + k + (steps - 1) * k * k."""
    return 1 + topk + (num_steps - 1) * topk * topk


def chain_draft_tokens(num_steps: int) -> int:
    """Draft tokens of a chain: its levels and the root."""
    return num_steps + 1


def nonsense(knobs: EngineKnobs) -> str | None:
    """Why a combination can't run; None when it can."""
    steps, topk, tokens = knobs.num_steps, knobs.eagle_topk, knobs.num_draft_tokens
    if steps < 0:
        return f"num-steps is {steps}; expected 0 (plain decoding) or more"
    if steps == 0:
        return _pool_nonsense(knobs)
    if topk < 1:
        return f"eagle-topk is {topk}; expected at least 1"
    if topk > 1:
        return f"eagle-topk is {topk}; this version drafts chains only, so expected 1"
    bound = draft_bound(steps, topk)
    if topk == 1 and tokens != bound:
        return (
            f"num-draft-tokens is {tokens}; {steps} steps at top-k 1 allow exactly {bound} "
            f"(the root counts), or num-steps {max(tokens - 1, 1)} would allow {tokens}"
        )
    return _pool_nonsense(knobs)


def _pool_nonsense(knobs: EngineKnobs) -> str | None:
    if knobs.page_size < 1:
        return f"page-size is {knobs.page_size}; expected at least 1"
    if knobs.page_size > knobs.max_total_tokens:
        return f"page-size {knobs.page_size} is larger than the pool of {knobs.max_total_tokens}"
    if knobs.chunked_prefill_size is not None and knobs.chunked_prefill_size < 1:
        return (
            f"chunked-prefill-size is {knobs.chunked_prefill_size}; expected 1 or more, -1 is off"
        )
    if knobs.parallel < 1:
        return f"parallel is {knobs.parallel}; expected at least 1"
    return None


def cell_id(knobs: EngineKnobs) -> str:
    """A stable readable name, such as `page16-chunk64-topk1-steps2-draft3`."""
    chunk = "off" if knobs.chunked_prefill_size is None else knobs.chunked_prefill_size
    draft = knobs.num_draft_tokens if knobs.num_steps else 1
    name = f"page{knobs.page_size}-chunk{chunk}-topk{knobs.eagle_topk}-steps{knobs.num_steps}"
    name += f"-draft{draft}"
    if knobs.parallel != 1:
        name += f"-parallel{knobs.parallel}"
    if knobs.preallocation != "none":
        name += f"-{knobs.preallocation}"
    return name


def expand(
    axes: Mapping[str, Sequence[Any]],
    fixed: Mapping[str, Any],
    *,
    include: Sequence[Mapping[str, Any]] = (),
    exclude: Sequence[Mapping[str, Any]] = (),
    zipped: Mapping[str, Sequence[Any]] | None = None,
) -> Matrix:
    """All combinations of `axes`, those of `zipped` in step, `include` added, `exclude` taken out.

    A `num_draft_tokens` of None follows the number of steps. With several values of it, a
    combination that does not fit its steps is skipped with the reason.
    """
    names = list(axes)
    combinations = [dict(zip(names, values, strict=True)) for values in product(*axes.values())]
    if zipped:
        in_step = [
            dict(zip(zipped, values, strict=True)) for values in zip(*zipped.values(), strict=True)
        ]
        combinations = [{**c, **z} for c in combinations for z in in_step]
    combinations += [dict(extra) for extra in include]
    cells: dict[str, Cell] = {}
    skipped: list[Skipped] = []
    for combination in combinations:
        knobs = make_knobs({**fixed, **combination})
        name = cell_id(knobs)
        reason = nonsense(knobs)
        if any(_matches(combination, pattern) for pattern in exclude):
            reason = "excluded by the matrix"
        if reason:
            skipped.append(Skipped(name, reason))
        else:
            cells.setdefault(name, Cell(name, knobs))
    return Matrix(tuple(cells.values()), tuple(skipped))


def make_knobs(values: Mapping[str, Any]) -> EngineKnobs:
    """Knobs from option values: chunk -1 is off, draft tokens None follow the steps."""
    chunk = values.get("chunked_prefill_size", -1)
    steps = int(values["num_steps"])
    tokens = values.get("num_draft_tokens")
    preallocation: Preallocation = values.get("preallocation", "none")
    return EngineKnobs(
        page_size=int(values["page_size"]),
        chunked_prefill_size=None if chunk in (-1, None) else int(chunk),
        num_steps=steps,
        eagle_topk=int(values.get("eagle_topk", 1)),
        num_draft_tokens=chain_draft_tokens(steps) if tokens is None else int(tokens),
        preallocation=preallocation,
        preallocate_tokens=int(values.get("preallocate_tokens", 64)),
        parallel=int(values["parallel"]),
        max_total_tokens=int(values["max_total_tokens"]),
        context_length=values.get("context_length"),
    )


def _matches(combination: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    return all(combination.get(name) == value for name, value in pattern.items())
