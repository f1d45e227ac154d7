"""`eaglebench run`: the options, and the order in which a run is put together.

Everything that can be wrong with what the user gave is found before a model is loaded.
"""

from typing import Any

import click

from eaglebench.cli.effects import sources_of
from eaglebench.cli.exit_codes import PASS
from eaglebench.cli.options import SectionedCommand
from eaglebench.cli.run_options import run_parameters
from eaglebench.errors import UsageError


def _run(suite: str | None, **options: Any) -> int:
    # Imported here: --help must not wait for pydantic.
    from eaglebench.cli.run_flow import RunOutput, dry_run, prepare
    from eaglebench.cli.settle import given_options

    if suite is None and options["resume"] is None:
        raise UsageError(
            "no suite is named", hint="eaglebench run tiny; `eaglebench suites` lists all"
        )
    output = RunOutput(
        output_dir=options["output_dir"] or "results",
        progress="none" if options["disable_tqdm"] else options["progress"] or "auto",
        is_json=options["format"] == "json",
    )
    context = click.get_current_context()
    plan = prepare(
        suite,
        given_options(context),
        resume=options["resume"],
        output=output,
        sources=sources_of(context),
    )
    if options["dry_run"]:
        dry_run(plan)
        return PASS
    from eaglebench.cli.measure import measure

    return measure(plan, output)


run = SectionedCommand(
    "run",
    params=run_parameters(),
    callback=_run,
    help="Measure SUITE in every cell of the matrix and every arm, and print what differs.\n\n"
    "`eaglebench suites` lists the suites; `eaglebench help aliases` lists the names that options "
    "have in other tools.",
    context_settings={"token_normalize_func": lambda name: name.replace("_", "-")},
)
