"""A stored run as comparison and reports look at it: its turns with their verify steps."""

from dataclasses import replace

from eaglebench.records.measured import MeasuredRun, MeasuredTurn
from eaglebench.store.run_folder import RunFolder


def measured_turns(folder: RunFolder) -> list[MeasuredTurn]:
    """All turns of a run, every pass, with their verify steps."""
    steps = folder.steps()
    return [
        # A turn that ran again after a crash may have been longer before; its line counts.
        replace(turn, steps=tuple(steps.get(turn.key, ())[: turn.counters.verify_steps]))
        for turn in folder.turns()
    ]


def measured_run(folder: RunFolder) -> MeasuredRun:
    """A whole run.

    Raises:
        InputFileError: the folder's manifest or lines are broken.
    """
    manifest = folder.manifest()
    environment = folder.environment()
    return MeasuredRun(
        run_id=folder.run_id,
        status=manifest["status"],
        started=manifest.get("started") or "",
        suite=manifest["suite"],
        config=manifest["config"],
        models=manifest["models"],
        git=manifest.get("git"),
        environment={name: environment.get(name, {}) for name in ("exact", "timing", "info")},
        tau=manifest.get("tau") or {},
        turns=tuple(measured_turns(folder)),
        blocks=tuple(folder.blocks()),
    )
