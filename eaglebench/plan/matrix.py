"""The matrix: axes in, cells out, and a reason for every point that was left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from eaglebench.errors import InvariantError, UsageError
from eaglebench.plan.axes import AXES
from eaglebench.plan.cell import Cell, SkippedCell, cell_id
from eaglebench.plan.explain import unknown_name
from eaglebench.plan.option import AxisValue
from eaglebench.records.draft_shape import chain_steps, usual_draft_tokens
from eaglebench.records.flags import flag_of
from eaglebench.records.generation import SamplingRule
from eaglebench.records.knobs import AUTO, EngineKnobs

_SHAPE_AXES = ("num_steps", "eagle_topk", "num_draft_tokens")
Point = Mapping[str, AxisValue]


class MatrixSpec(BaseModel):
    """What to vary.

    Attributes:
        axes: every combination of these values.
        zip: groups of axes that move together; the values of a group are equally many.
        include: points to add, as they stand.
        exclude: points to drop; a point is dropped when it agrees in every value given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    axes: dict[str, tuple[AxisValue, ...]] = Field(default_factory=dict)
    zip: tuple[dict[str, tuple[AxisValue, ...]], ...] = ()
    include: tuple[dict[str, AxisValue], ...] = ()
    exclude: tuple[dict[str, AxisValue], ...] = ()

    @field_validator("axes")
    @classmethod
    def _check_axes(cls, axes: dict[str, tuple[AxisValue, ...]]) -> Any:
        for name, values in axes.items():
            if not values:
                raise ValueError(f"{name} has no values")
            for value in values:
                check_axis_value(name, value)
        return axes

    @field_validator("zip")
    @classmethod
    def _check_zip(cls, groups: tuple[dict[str, tuple[AxisValue, ...]], ...]) -> Any:
        for group in groups:
            cls._check_axes(group)
            if len({len(values) for values in group.values()}) > 1:
                sizes = ", ".join(f"{name} has {len(values)}" for name, values in group.items())
                raise ValueError(f"zipped axes need equally many values: {sizes}")
        return groups

    @field_validator("include", "exclude")
    @classmethod
    def _check_points(cls, points: tuple[dict[str, AxisValue], ...]) -> Any:
        for point in points:
            for name, value in point.items():
                check_axis_value(name, value)
        return points


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds for every cell of a run."""

    max_total_tokens: int
    context_length: int | None
    is_speculative: bool
    arms: tuple[str, ...] = ()
    swa_full_tokens_ratio: float = EngineKnobs().swa_full_tokens_ratio
    sampling_rule: SamplingRule = "target-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """Cells in order, and the points that were left out."""

    cells: tuple[Cell, ...]
    skipped: tuple[SkippedCell, ...]


def check_axis_value(name: str, value: object) -> None:
    """Refuse an unknown axis or a value it can never have.

    Raises:
        ValueError: says what was wrong and what was expected.
    """
    if name not in AXES:
        raise ValueError(unknown_name(name, list(AXES)))
    problem = AXES[name].problem(name, value)
    if problem is not None:
        raise ValueError(problem)


def expand(spec: MatrixSpec, limits: Limits) -> Expansion:
    """All cells of a matrix, each once, in a stable order.

    Raises:
        UsageError: no cell is left, or the axes contradict each other.
        InvariantError: two points that differ would be one cell.
    """
    cells: dict[str, Cell] = {}
    named: dict[str, EngineKnobs] = {}
    skipped: dict[str, SkippedCell] = {}
    for point in _points(spec):
        knobs = _knobs(point, limits)
        name = cell_id(knobs)
        _check_name(name, named.setdefault(name, knobs), knobs)
        reason = _problem(knobs, limits)
        if reason is not None:
            skipped.setdefault(name, SkippedCell(cell_id=name, reason=reason))
        else:
            cells.setdefault(name, Cell(cell_id=name, knobs=knobs))
    if not cells:
        reasons = list(dict.fromkeys(cell.reason for cell in skipped.values()))
        raise UsageError(
            "; ".join(reasons[:3]) if reasons else "the matrix excludes all of its cells"
        )
    return Expansion(cells=tuple(cells.values()), skipped=tuple(skipped.values()))


def _check_name(name: str, known: EngineKnobs, knobs: EngineKnobs) -> None:
    """Refuse a name that another point has already: only one of the two would be measured.

    Raises:
        InvariantError: names what the points differ in.
    """
    here, there = asdict(knobs), asdict(known)
    differing = [f"{n} is {there[n]} and {here[n]}" for n in here if here[n] != there[n]]
    if differing:
        raise InvariantError(
            f"two points of the matrix are both called {name}: {', '.join(differing)}; what an axis "
            "varies has to be part of a cell's name"
        )


def _points(spec: MatrixSpec) -> Iterator[Point]:
    """Products of axes and zipped groups without the excluded ones, then the included ones."""
    columns: list[list[dict[str, AxisValue]]] = [
        [{name: value} for value in values] for name, values in _in_order(spec.axes)
    ]
    for group in spec.zip:
        rows = zip(*group.values(), strict=True)
        columns.append([dict(zip(group, row, strict=True)) for row in rows])
    for parts in product(*columns):
        point = {name: value for part in parts for name, value in part.items()}
        if not any(_agrees(point, excluded) for excluded in spec.exclude):
            yield point
    yield from spec.include


def _in_order(
    axes: Mapping[str, Sequence[AxisValue]],
) -> list[tuple[str, Sequence[AxisValue]]]:
    return sorted(axes.items(), key=lambda axis: list(AXES).index(axis[0]))


def _agrees(point: Point, excluded: Point) -> bool:
    return all(point.get(name) == value for name, value in excluded.items())


def _knobs(point: Point, limits: Limits) -> EngineKnobs:
    num_steps, eagle_topk, num_draft_tokens = _draft_shape(point, limits)
    given = {
        axis.knob: axis.to_knob(point[name])
        for name, axis in AXES.items()
        if axis.knob is not None and name in point
    }
    if given.get("preallocation", EngineKnobs().preallocation) == "none":
        # It aims at nothing, so cells that differ in the aim alone are the same cell.
        given.pop("preallocate_tokens", None)
    return EngineKnobs(
        **cast("dict[str, Any]", given),
        num_steps=num_steps,
        eagle_topk=eagle_topk,
        num_draft_tokens=num_draft_tokens,
        max_total_tokens=limits.max_total_tokens,
        swa_full_tokens_ratio=limits.swa_full_tokens_ratio,
        context_length=limits.context_length,
    )


def _draft_shape(point: Point, limits: Limits) -> tuple[int, int, int]:
    """Steps, top-k and draft tokens of a point; what is not given follows from what is."""
    given = {name: int(point[name]) for name in _SHAPE_AXES if point.get(name, AUTO) != AUTO}
    if "num_speculative_tokens" in point:
        if given:
            mixed = ", ".join(flag_of(name) for name in given)
            raise UsageError(
                f"--num-speculative-tokens sets steps, top-k and draft tokens; {mixed} can't be "
                "given beside it"
            )
        # vLLM's K is a chain of K tokens, the root not counted.
        given["num_steps"] = int(point["num_speculative_tokens"])
    if not limits.is_speculative:
        if given.get("num_steps", 0) > 0:
            raise UsageError(
                f"--algorithm NONE drafts nothing, but --num-steps is {given['num_steps']}"
            )
        given["num_steps"] = 0
    eagle_topk = given.get("eagle_topk", EngineKnobs().eagle_topk)
    if "num_steps" not in given and "num_draft_tokens" in given and eagle_topk == 1:
        given["num_steps"] = chain_steps(given["num_draft_tokens"])
    num_steps = given.get("num_steps", EngineKnobs().num_steps)
    if num_steps == 0:
        eagle_topk = 1
    return (
        num_steps,
        eagle_topk,
        given.get("num_draft_tokens", usual_draft_tokens(num_steps, eagle_topk)),
    )


def _problem(knobs: EngineKnobs, limits: Limits) -> str | None:
    """Why a cell makes no sense; None when it does."""
    if knobs.eagle_topk > 1 and limits.sampling_rule != "target-only":
        return knobs.problem(limits.arms) or (
            f"--sampling-rule {limits.sampling_rule} draws chains, and --eagle-topk "
            f"{knobs.eagle_topk} makes trees; expected --eagle-topk 1, or --sampling-rule target-only"
        )
    return knobs.problem(limits.arms)
