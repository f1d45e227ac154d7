"""Runs of several setups, one after another, that differ in nothing else."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from eaglebench.bench.measure import TRACE, measure
from eaglebench.bench.prepare import RunSetup, prepare
from eaglebench.bench.stored_run import Run
from eaglebench.errors import UsageError
from eaglebench.plan.option import Notice, Sources
from eaglebench.plan.setups import SetupChoice
from eaglebench.progress import Progress


def prepare_setups(
    suite: str | None,
    choices: Sequence[SetupChoice],
    *,
    resume: str | None,
    output_dir: str,
    sources: Sources,
    notice: Notice,
) -> list[RunSetup]:
    """Check all of them before the first one loads a model; what they share is told once.

    Raises:
        UsageError: one can't be run; it is named.
    """
    told: set[str] = set()

    def once(line: str) -> None:
        if line not in told:
            told.add(line)
            notice(line)

    found = []
    for choice in choices:
        try:
            setup = prepare(
                suite,
                choice.given,
                resume=resume,
                output_dir=output_dir,
                sources=sources,
                notice=once,
            )
        except UsageError as error:
            if not choice.values or choice.name in error.message:
                raise
            raise UsageError(f"{choice.name}: {error.message}", hint=error.hint) from error
        found.append(setup)
    return found


def measure_setups(
    setups: Mapping[str, RunSetup],
    output_dir: str,
    *,
    make_progress: Callable[[], AbstractContextManager[Progress]],
    notice: Notice,
) -> list[Run]:
    """Measure each, by its name; every one is kept as soon as it is done. One alone has none.

    Raises:
        UsageError: models can't be had or don't fit.
        StorageError: the results can't be written.
        KeyboardInterrupt: after saying which were not begun.
    """
    done: list[Run] = []
    names = list(setups)
    for number, (name, setup) in enumerate(setups.items()):
        if name:
            notice(f"{name} ({number + 1} of {len(setups)})")
        try:
            run = Run(measure(setup, output_dir, progress=make_progress(), notice=notice))
        except KeyboardInterrupt:
            if left := names[number + 1 :]:
                notice(f"not begun: {'; '.join(left)}")
            raise
        notice(f"results: {run.path}")
        if (trace := run.path / TRACE).exists():
            notice(f"trace, for perfetto.dev or chrome://tracing: {trace}")
        done.append(run)
    return done
