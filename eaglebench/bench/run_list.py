"""What a list of runs says of each: what it measured, and what came out."""

from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from eaglebench.errors import EaglebenchError
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.store.finalize import read_cells_csv
from eaglebench.store.run_folder import RunFolder, find_run, list_runs

UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """What a cell and arm came to; None where that was not measured."""

    cell_id: str
    arm: str
    acceptance_length: float | None
    tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run in a list.

    Attributes:
        run_id: its name.
        path: its folder.
        status: `done`, ...; `unreadable` where its files are broken, and then nothing else is known.
        suite: by name.
        model: the target, by name.
        draft_model: the head, by name; None where there is none.
        dtype: of the models.
        started: when, in UTC.
        arms: in the order they were asked for.
        cells: their names.
        labels: what the user calls it.
        results: by cell and arm; empty before it is done.
    """

    run_id: str
    path: str
    status: str
    suite: str | None = None
    model: str | None = None
    draft_model: str | None = None
    dtype: str | None = None
    started: str | None = None
    arms: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    results: tuple[ArmResult, ...] = ()

    @property
    def headline_arm(self) -> str | None:
        """The arm that a single line speaks of: the first with a cache."""
        return next((arm for arm in self.arms if arm != BASELINE_ARM), BASELINE_ARM)

    def headline(self, name: str) -> tuple[float, float] | None:
        """Least and most over the cells of that arm; None where nothing was measured."""
        found = [getattr(each, name) for each in self.results if each.arm == self.headline_arm]
        known = [value for value in found if value is not None]
        return (min(known), max(known)) if known else None


def summaries(root: Path) -> list[RunSummary]:
    """All runs of a folder, the oldest first.

    Raises:
        InputFileError: the folder can't be read.
    """
    return [_summary(folder) for folder in list_runs(root)]


def run_ids(root: Path) -> list[str]:
    """Names of all runs, the oldest first; raises InputFileError where the folder can't be read."""
    return [folder.run_id for folder in list_runs(root)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNames:
    """What a run's cells and questions are called."""

    cells: tuple[str, ...]
    questions: tuple[str, ...]


def names_in_run(root: Path, name: str) -> RunNames:
    """Cells and finished questions of one run.

    Raises:
        UsageError: there is no such run, or it can't be read.
    """
    folder = find_run(root, name)
    asked = dict.fromkeys(turn.question_id for turn in folder.turns())
    return RunNames(cells=tuple(folder.manifest().get("cells") or ()), questions=tuple(asked))


def _summary(folder: RunFolder) -> RunSummary:
    path = str(folder.path)
    try:
        manifest = folder.manifest()
        config, models = manifest["config"], manifest["models"]
        return RunSummary(
            run_id=folder.run_id,
            path=path,
            status=manifest["status"],
            suite=config["suite"],
            model=models["target_id"],
            draft_model=models.get("draft_id"),
            dtype=models["dtype"],
            started=manifest.get("started"),
            arms=tuple(config["arms"]),
            cells=tuple(manifest.get("cells") or ()),
            labels=dict(config.get("labels") or {}),
            results=tuple(map(_result, read_cells_csv(folder))),
        )
    except (EaglebenchError, KeyError, TypeError, ValueError):
        return RunSummary(run_id=folder.run_id, path=path, status=UNREADABLE)


def _result(row: dict[str, Any]) -> ArmResult:
    return ArmResult(
        cell_id=row["cell_id"],
        arm=row["arm"],
        acceptance_length=_number(row.get("acceptance_length")),
        tokens_per_s=_number(row.get("tokens_per_s")),
    )


def _number(text: str | None) -> float | None:
    value = float(text) if text else None
    return value if value is not None and isfinite(value) else None
