"""An arm against itself, at each dtype: what this machine can tell apart."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from eaglebench.bench.documents import load_run, refuse_untrusted
from eaglebench.bench.measure import measure
from eaglebench.bench.prepare import prepare
from eaglebench.plan.option import Notice, Sources
from eaglebench.progress import Progress
from eaglebench.records.knobs import AGAIN
from eaglebench.stats.noise import Noise, measure_noise
from eaglebench.stats.trust import doubts_of


def measure_machine(
    suite: str,
    arm: str,
    dtypes: Sequence[str],
    options: Mapping[str, Any],
    *,
    output_dir: str,
    sources: Sources,
    progress: Callable[[], AbstractContextManager[Progress]],
    notice: Notice,
) -> list[tuple[str, Noise]]:
    """Run the arm beside itself at each dtype; what identical passes differ by, cell by cell.

    Args:
        suite: a name or a file.
        arm: the arm that runs twice.
        dtypes: one run each.
        options: further options of `run`.
        output_dir: where runs are kept.
        sources: which options came from the user.
        progress: a display for one run.
        notice: is told in a line what goes on.

    Returns:
        The dtype that a run computed in, and the noise of one of its cells.

    Raises:
        UsageError: the options can't be run.
        NothingMeasuredError: a run can't be trusted.
    """
    found = []
    for dtype in dtypes:
        given = {
            **options,
            "dtype": dtype,
            "arms": (arm, arm + AGAIN),
            "experiment_name": f"calibrate-{suite}",
        }
        setup = prepare(
            suite, given, resume=None, output_dir=output_dir, sources=sources, notice=notice
        )
        folder = measure(setup, output_dir, progress=progress(), notice=notice)
        run = load_run(folder)
        refuse_untrusted(run.run_id, doubts_of(run))
        found += [(str(run.models["dtype"]), noise) for noise in measure_noise(run)]
        notice(f"results: {folder.path}")
    return found
