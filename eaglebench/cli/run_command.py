"""`eaglebench run`: the options, and the order in which a run is put together.

Everything that can be wrong with what the user gave is found before a model is loaded.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from eaglebench.cli.console import notice
from eaglebench.cli.effects import sources_of
from eaglebench.cli.exit_codes import PASS
from eaglebench.cli.options import SectionedCommand, joined
from eaglebench.cli.run_options import run_parameters
from eaglebench.cli.shown_setups import print_setups, trust_status
from eaglebench.errors import UsageError
from eaglebench.plan.draft_config import parse_values
from eaglebench.plan.options import all_options, parameter_of, typed_flag
from eaglebench.records.flags import DEFAULT_OUTPUT

if TYPE_CHECKING:
    from eaglebench.bench.prepare import RunSetup


def given_options(ctx: click.Context) -> dict[str, Any]:
    """Values that were given by flag, environment or file, lists joined."""
    from click.core import ParameterSource

    given: dict[str, Any] = {}
    for name, option in all_options().items():
        parameter = parameter_of(name, option)
        if ctx.get_parameter_source(parameter) in {None, ParameterSource.DEFAULT}:
            continue
        value = ctx.params[parameter]
        if option.is_joined:
            value = joined(value)
        elif option.kind == "values":
            value = parse_values(value, typed_flag(name, option))
        elif option.kind == "pair":
            value = dict(value)
        given[name] = value
    return given


def _run(suite: str | None, **options: Any) -> int:
    # Imported here: --help must not wait for pydantic.
    from eaglebench.bench.setups import measure_setups, prepare_setups
    from eaglebench.plan.setups import split_setups

    if suite is None and options["resume"] is None:
        raise UsageError(
            "no suite is named", hint="eaglebench run tiny; `eaglebench suites` lists all"
        )
    output_dir = options["output_dir"] or DEFAULT_OUTPUT
    context = click.get_current_context()
    choices = split_setups(given_options(context))
    prepared = prepare_setups(
        suite,
        choices,
        resume=options["resume"],
        output_dir=output_dir,
        sources=sources_of(context),
        notice=notice,
    )
    setups = dict(zip((choice.name for choice in choices), prepared, strict=True))
    is_json = options["format"] == "json"
    if options["dry_run"]:
        _show_dry_run(setups, is_json)
        return PASS
    from eaglebench.cli.progress_display import progress_display
    from eaglebench.cli.show_command import print_run

    shown = "none" if options["disable_tqdm"] else options["progress"] or "auto"
    runs = measure_setups(
        setups, output_dir, make_progress=lambda: progress_display(shown), notice=notice
    )
    if len(runs) > 1:
        return print_setups(runs, is_json=is_json)
    return trust_status(print_run(runs[0], is_json=is_json).doubts)


def _show_dry_run(setups: "Mapping[str, RunSetup]", is_json: bool) -> None:
    """What would run, of each setup."""
    from eaglebench.bench.prepare import dry_run_document, dry_run_lines

    if is_json:
        documents = [
            {**({"setup": name} if name else {}), **dry_run_document(setup)}
            for name, setup in setups.items()
        ]
        click.echo(json.dumps(documents if len(documents) > 1 else documents[0], indent=1))
        return
    for name, setup in setups.items():
        click.echo("\n".join([*([name] if name else []), *dry_run_lines(setup)]))


run = SectionedCommand(
    "run",
    params=run_parameters(),
    callback=_run,
    help="Measure SUITE in every cell of the matrix and every arm, and print what differs.\n\n"
    "`eaglebench suites` lists the suites; `eaglebench help aliases` lists the names that options "
    "have in other tools.",
    context_settings={"token_normalize_func": lambda name: name.replace("_", "-")},
)
