"""The usual suspects of a low acceptance length, each alone against the plainest cell.

The engine is exact, so that page size, chunks, batch and cache change no draft: one of them that does
is at fault. What is low in the plainest cell, without a cache, is the head on these prompts.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from eaglebench.bench.documents import load_run, tau_of
from eaglebench.bench.measure import measure
from eaglebench.bench.prepare import prepare
from eaglebench.errors import NothingMeasuredError, UsageError
from eaglebench.gate.arms import judge_arm
from eaglebench.plan.axes import CHUNK_OFF
from eaglebench.plan.option import Notice, Sources
from eaglebench.progress import Progress
from eaglebench.records.flags import flag_of
from eaglebench.records.knobs import BASELINE_ARM, EngineKnobs
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.suspects import WITH_CACHE, Suspect
from eaglebench.stats.bootstrap import Length, length_of
from eaglebench.stats.difference import Side, make_difference, sides_of
from eaglebench.stats.snapshot import question_counts

CACHE = "radix"
USUAL: Mapping[str, Any] = {"page_size": 16, "chunked_prefill_size": 64, "parallel": 4}
"""Suspects of a run that names none."""
MAY_BE_SUSPECT = (*USUAL, "preallocation", "eviction_policy")
"""Axes that may change no draft."""
SETTLED = (
    "arms",
    "matrix",
    "passes",
    "precision",
    "replay",
    "resume",
    "dry_run",
    "format",
    "profile",
)
"""Options of `run` that this settles itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found.

    Attributes:
        run_id: the run it was found in.
        head: length of the plainest cell without a cache.
        whole: length with everything on, cache included.
        suspects: each alone, then all together.
        expected: what was hoped for; None where nobody said.
    """

    run_id: str
    head: Length
    whole: Length
    suspects: tuple[Suspect, ...]
    expected: float | None

    @property
    def judgement(self) -> Judgement:
        """The verdicts on the suspects, and on the length that was expected."""
        findings = [suspect.finding for suspect in self.suspects]
        if self.expected is not None:
            is_below = self.whole.high < self.expected
            findings.append(
                Finding(
                    cell_id="all",
                    arm=CACHE,
                    metric="al",
                    verdict="REGRESSED" if is_below else "PASS",
                    reason=f"expected {self.expected:.2f}",
                    before=self.expected,
                    after=self.whole.value,
                )
            )
        return Judgement(
            candidate=self.run_id, baseline="the plainest cell", findings=tuple(findings), notes=()
        )


def diagnose(
    suite: str,
    given: Mapping[str, Any],
    expected: float | None,
    *,
    output_dir: str,
    sources: Sources,
    progress: AbstractContextManager[Progress],
    notice: Notice,
) -> Diagnosis:
    """Run a suite plainly, with each suspect alone and with all, and say which of them is at fault.

    Args:
        suite: a name or a file.
        given: options of `run`; page size, chunk, batch and the like are the suspects, one value each.
        expected: the acceptance length that was hoped for.
        output_dir: where the run is kept.
        sources: which of `given` came from the user.
        progress: is told how far it is.
        notice: is told in a line what goes on.

    Raises:
        UsageError: an option can't be had here, or the run can't be.
        NothingMeasuredError: no verify step was taken.
    """
    if wrong := [flag_of(name) for name in SETTLED if name in given]:
        raise UsageError(f"{', '.join(wrong)} of `run` is settled by `diagnose` itself")
    suspects = _suspects(given)
    options = {name: value for name, value in given.items() if name not in MAY_BE_SUSPECT}
    options |= {
        "arms": (CACHE, BASELINE_ARM),
        "matrix": {"zip": _cells(suspects)},
        "experiment_name": given.get("experiment_name", f"diagnose-{suite}"),
    }
    known = {name: typed for name, typed in sources.items() if name not in MAY_BE_SUSPECT}
    setup = prepare(
        suite, options, resume=None, output_dir=output_dir, sources=known, notice=notice
    )
    run = load_run(measure(setup, output_dir, progress=progress, notice=notice))
    return _found(run, [cell.cell_id for cell in setup.expansion.cells], suspects, expected)


def _suspects(given: Mapping[str, Any]) -> dict[str, Any]:
    """Axes to be tried with the value of each.

    Raises:
        UsageError: an axis has several values.
    """
    named = {name: given[name] for name in MAY_BE_SUSPECT if name in given}
    for name, values in named.items():
        if len(values) > 1:
            raise UsageError(
                f"{flag_of(name)} has {len(values)} values; `diagnose` tries one of each",
                hint="eaglebench run takes them all",
            )
    chosen = {name: values[0] for name, values in named.items()} or dict(USUAL)
    found = {name: value for name, value in chosen.items() if value != _plain(name)}
    if not found:
        raise UsageError("every suspect is as plain as can be; nothing would be tried")
    return found


def _plain(name: str) -> Any:
    """The value of an axis in the plainest cell."""
    return CHUNK_OFF if name == "chunked_prefill_size" else getattr(EngineKnobs(), name)


def _cells(suspects: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Columns of cells: the plainest, each suspect alone, and where there are several, all."""
    last = [True] * (len(suspects) > 1)
    return {
        name: [
            value if on else _plain(name) for on in (False, *(o == name for o in suspects), *last)
        ]
        for name, value in suspects.items()
    }


def _found(
    run: MeasuredRun, cells: list[str], suspects: Mapping[str, Any], expected: float | None
) -> Diagnosis:
    sides = sides_of((turn for turn in run.turns if turn.pass_index == 0), run.blocks)
    names = [f"{flag_of(name).removeprefix('--')} {value}" for name, value in suspects.items()]
    names = ["prefix cache", *names, *(["all of them"] * (len(suspects) > 1))]
    plain = sides[cells[0], BASELINE_ARM]
    tried = [_suspect(names[0], sides[cells[0], CACHE], plain, run, hits=True)]
    for cell, name in zip(cells[1:], names[1:], strict=True):
        tried.append(_suspect(name, sides[cell, BASELINE_ARM], plain, run))
        tried.append(_suspect(name + WITH_CACHE, sides[cell, CACHE], plain, run, hits=True))
    head, whole = (
        length_of(question_counts(side.turns)) for side in (plain, sides[cells[-1], CACHE])
    )
    if head is None or whole is None:
        raise NothingMeasuredError(f"run {run.run_id} took no verify step")
    return Diagnosis(
        run_id=run.run_id, head=head, whole=whole, suspects=tuple(tried), expected=expected
    )


def _suspect(
    name: str, side: Side, plain: Side, run: MeasuredRun, *, hits: bool = False
) -> Suspect:
    difference = make_difference(side, plain, "the plainest cell", tau_of(run))
    turn = side.turns[0]
    return Suspect(
        name=name,
        cell_id=turn.cell_id,
        arm=turn.arm,
        difference=difference,
        finding=judge_arm(turn.cell_id, turn.arm, difference),
        is_exercised=not hits or bool(side.counts.cached_tokens),
    )
