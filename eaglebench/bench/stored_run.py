"""A stored run as values: its document for people, its data frames for a notebook."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglebench.bench.documents import load_run, make_document
from eaglebench.records.doubt import Doubt
from eaglebench.records.flags import DEFAULT_OUTPUT
from eaglebench.records.measured import TURN_KEY, MeasuredBlock, MeasuredRun, MeasuredTurn
from eaglebench.report.document import ReportDocument
from eaglebench.store.run_folder import RunFolder, find_measured, find_run
from eaglebench.store.run_folder import list_runs as folders_of_runs

if TYPE_CHECKING:
    from pandas import DataFrame


class Run:
    """A run on disk; what is asked of it is read once.

    In data frames a value that was not measured is `<NA>`, never 0.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def run_id(self) -> str:
        """Its name among the runs."""
        return self.folder.run_id

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.folder.path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`run.json`; raises InputFileError where it is broken."""
        return self.folder.manifest()

    @cached_property
    def measured(self) -> MeasuredRun:
        """Its turns, steps and blocks; raises NothingMeasuredError without a finished turn."""
        return load_run(self.folder)

    @cached_property
    def document(self) -> ReportDocument:
        """Rows, verdicts, remarks and doubts; raises NothingMeasuredError without a finished turn."""
        return make_document(self.folder, self.measured)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What speaks against trusting it."""
        return self.document.doubts

    @property
    def is_trusted(self) -> bool:
        """Whether it is a measurement at all."""
        return not any(doubt.is_fatal for doubt in self.doubts)

    @cached_property
    def turns(self) -> "DataFrame":
        """One row a turn, counters as columns; see `docs/record-format.md`."""
        return _frame(map(_flat, self.folder.turns()))

    @cached_property
    def steps(self) -> "DataFrame":
        """One row a verify step."""
        return _frame(
            {**dict(zip(TURN_KEY, key, strict=True)), "step": number, **asdict(step)}
            for key, steps in self.folder.steps().items()
            for number, step in enumerate(steps)
        )

    @cached_property
    def blocks(self) -> "DataFrame":
        """One row a timed block of an arm."""
        return _frame(map(_flat, self.folder.blocks()))

    @cached_property
    def cells(self) -> "DataFrame":
        """One row a cell and arm: what the run's table shows."""
        return _frame(row.as_dict() for row in self.document.rows)


def open_run(
    run: "Run | Path | str",
    output_dir: Path | str | None = None,
    notice: Callable[[str], None] | None = None,
    *,
    is_strict: bool = False,
) -> Run:
    """A run by itself, id, path, `latest` or `latest~1`; `notice` is told what was passed over.

    A strict `latest` is the newest run whatever came of it: a verdict on another one than was run
    would be none.

    Raises:
        UsageError: there is no such run.
    """
    if isinstance(run, Run):
        return run
    root = root_of(run, output_dir)
    folder, passed = (find_run(root, str(run)), []) if is_strict else find_measured(root, str(run))
    if passed and notice is not None:
        notice(f"{run} is {folder.run_id}; passed over, without an answer: {', '.join(passed)}")
    return Run(folder)


def list_runs(output_dir: Path | str = DEFAULT_OUTPUT) -> list[Run]:
    """All stored runs, the oldest first."""
    return [Run(folder) for folder in folders_of_runs(Path(output_dir))]


def root_of(run: "Run | Path | str", output_dir: Path | str | None) -> Path:
    """Where runs and baselines are: as said, or where the run lies itself."""
    if output_dir is None and isinstance(run, Run) and run.path.parent.name == "runs":
        return run.path.parent.parent
    return Path(output_dir or DEFAULT_OUTPUT)


def _flat(record: MeasuredTurn | MeasuredBlock) -> dict[str, Any]:
    """A record's fields, those of its parts among them; what a turn says itself goes first."""
    values = asdict(record)
    values.pop("steps", None)
    parts = [values.pop(name) for name in ("counters", "knobs", "times") if name in values]
    return {**{name: value for part in parts for name, value in part.items()}, **values}


def _frame(rows: Iterable[Mapping[str, Any]]) -> "DataFrame":
    import pandas as pd  # noqa: PLC0415  # slow to import; most commands need none

    return pd.DataFrame(list(rows)).convert_dtypes()
