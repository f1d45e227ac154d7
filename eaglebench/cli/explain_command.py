"""`eaglebench explain`: one question, step by step, in two arms."""

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import NOTHING_MEASURED, PASS
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.plan.option import Need
from eaglebench.records.knobs import BASELINE_ARM

_OTHER_ARM = Need("it is the arm itself", lambda given: given["against"] != given["arm"])


@click.command(
    cls=StatedCommand, needs=always("turn", "arm", "output_dir") | {"against": _OTHER_ARM}
)
@click.argument("run")
@click.argument("cell")
@click.argument("question")
@click.option("--turn", type=click.IntRange(min=1), default=1, show_default=True, help="Its turn.")
@click.option("--arm", help="Which arm.  [default: the first that is not the other one]")
@click.option("--against", default=BASELINE_ARM, show_default=True, help="The other arm.")
@output_dir_option("Where runs are.")
def explain(
    run: str,
    cell: str,
    question: str,
    *,
    turn: int,
    arm: str | None,
    against: str,
    output_dir: str,
) -> int:
    """Show what was drafted, accepted and chosen in every step of QUESTION in CELL of RUN.

    CELL may be a part of its name, if no other cell has it; `-` is the only cell. The first step
    where the two arms part is marked, and the reason stands below.
    """
    from eaglebench.bench.api import load
    from eaglebench.bench.explain import explain_turn, token_text
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.report.terminal import render_steps

    folder = load(run, output_dir=output_dir).folder
    found = explain_turn(folder, cell, question, turn, arm, against)
    text = token_text(found.model, notice=notice)
    render_steps(
        found.mine, found.other, found.pair, found.tau, console=stdout_console(), text=text
    )
    return PASS if found.is_measured else NOTHING_MEASURED
