"""Stored runs as rows of the table."""

from eaglebench.errors import NothingMeasuredError
from eaglebench.report.rows import Row, make_rows
from eaglebench.stats.pairing import Tau
from eaglebench.store.decode import measured_blocks, measured_turns
from eaglebench.store.run_folder import RunFolder


def load_rows(folder: RunFolder) -> list[Row]:
    """Rows of a run, from its lines.

    Raises:
        NothingMeasuredError: the run holds no finished turn.
    """
    turns = measured_turns(folder)
    if not turns:
        raise NothingMeasuredError(
            f"run {folder.run_id} holds no finished question",
            hint="eaglebench list shows the runs there are",
        )
    return make_rows(turns, measured_blocks(folder), stored_tau(folder))


def stored_tau(folder: RunFolder) -> Tau:
    """The near-tie thresholds a run measured for itself; 0 where it has none."""
    tau = folder.manifest().get("tau") or {}
    return Tau(target=float(tau.get("target", 0.0)), draft=float(tau.get("draft", 0.0)))
