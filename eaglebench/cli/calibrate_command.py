"""`eaglebench calibrate`: one arm against itself, to know what this machine can tell apart."""

import click

from eaglebench.cli.effects import HAS_RANGE, StatedCommand, always, sources_of
from eaglebench.cli.output_dir import output_dir_option


@click.command(
    cls=StatedCommand,
    needs=always(
        *("dtypes", "parallel", "arm", "passes", "num_questions", "max_new_tokens"),
        *("model", "page_size", "progress", "output_dir"),
    )
    | {"precision": HAS_RANGE},
)
@click.argument("suite", default="tiny")
@click.option(
    "--dtype", "dtypes", default="float32", show_default=True, help="One or more, with commas."
)
@click.option("--parallel", default="1", show_default=True, help="One or more, with commas.")
@click.option("--arm", default="radix", show_default=True, help="The arm to run against itself.")
@click.option(
    *("--passes", "--pairs", "passes"), default="8:40", show_default=True, help="LEAST:MOST passes."
)
@click.option("--precision", default="1%", show_default=True, help="Half-width to stop at.")
@click.option("-n", "--num-questions", type=int, help="Most questions.  [default: the suite's]")
@click.option("--max-new-tokens", type=int, help="Most tokens of an answer.")
@click.option("--model", help="Target.  [default: the suite's]")
@click.option("--page-size", type=int, default=1, show_default=True, help="Slots a page.")
@click.option("--progress", type=click.Choice(("auto", "rich", "plain", "none")), default="auto")
@output_dir_option("Where runs are.")
def calibrate(
    suite: str,
    *,
    dtypes: str,
    parallel: str,
    arm: str,
    output_dir: str,
    progress: str,
    page_size: int,
    **options: object,
) -> None:
    """Run an arm of SUITE against itself and say what that leaves to be seen.

    Sigma of one pair of passes, the smallest effect that so many pairs show, pairs and minutes
    for a change of 2 %; and how many acceptance lengths identical passes gave.
    """
    from eaglebench.bench.calibrate import measure_machine
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.progress_display import progress_display
    from eaglebench.report.terminal import render_noise

    given = {name: value for name, value in options.items() if value is not None}
    given |= {"parallel": _numbers(parallel), "page_size": (page_size,)}
    found = measure_machine(
        suite,
        arm,
        [dtype.strip() for dtype in dtypes.split(",")],
        given,
        output_dir=output_dir,
        sources=sources_of(click.get_current_context()),
        progress=lambda: progress_display(progress),
        notice=notice,
    )
    render_noise(found, stdout_console())


def _numbers(text: str) -> tuple[int, ...]:
    from eaglebench.errors import UsageError

    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--parallel {text!r}: expected numbers with commas") from error
