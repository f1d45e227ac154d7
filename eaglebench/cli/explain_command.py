"""`eaglebench explain`: one question, step by step, in two arms or two runs."""

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import NOTHING_MEASURED, PASS
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.plan.option import Need
from eaglebench.records.knobs import BASELINE_ARM

_OTHER_ARM = Need(
    "it is the arm itself",
    lambda given: given["against"] != given["arm"] or given["against_run"] is not None,
)


@click.command(
    cls=StatedCommand,
    needs=always("turn", "arm", "against_run", "output_dir") | {"against": _OTHER_ARM},
)
@click.argument("run")
@click.argument("cell")
@click.argument("question")
@click.option("--turn", type=click.IntRange(min=1), default=1, show_default=True, help="Its turn.")
@click.option("--arm", help="Which arm.  [default: the first that is not the other one]")
@click.option(
    "--against", help=f"The other arm.  [default: {BASELINE_ARM}; in another run the same arm]"
)
@click.option("--against-run", metavar="RUN", help="Take the other side from this run.")
@output_dir_option("Where runs are.")
def explain(
    run: str,
    cell: str,
    question: str,
    *,
    turn: int,
    arm: str | None,
    against: str | None,
    against_run: str | None,
    output_dir: str,
) -> int:
    """Show what was drafted, accepted and chosen in every step of QUESTION in CELL of RUN.

    CELL may be a part of its name, if no other cell has it; `-` is the only cell. The first step
    where the two arms part is marked. Below stands what the draft read there: which slots, who wrote
    them, with which next token then and now, and the cause as far as records tell it.
    """
    from eaglebench.bench.api import load
    from eaglebench.bench.explain import explain_turn, token_text
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.report.terminal import render_steps

    folder = load(run, output_dir=output_dir, notice=notice).folder
    other = (
        load(against_run, output_dir=output_dir, notice=notice).folder
        if against_run is not None
        else None
    )
    found = explain_turn(folder, cell, question, turn, arm, against, other_folder=other)
    text = token_text(found.model, notice=notice)
    render_steps(found, console=stdout_console(), text=text)
    return PASS if found.is_measured else NOTHING_MEASURED
