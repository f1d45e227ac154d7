"""`eaglebench diagnose`: is it the cache, the chunks, the page size, the batch or the head?"""

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import verdict_code
from eaglebench.errors import UsageError


@click.command(
    cls=StatedCommand,
    needs=always("expect", "run_options"),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("suite")
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--expect", type=click.FloatRange(min=1), help="The acceptance length that was hoped for."
)
def diagnose(suite: str, run_options: tuple[str, ...], *, expect: float | None) -> int:
    """Run SUITE plainly, then with each usual suspect alone, and name the one at fault.

    Further options are those of `eaglebench run`. Page size, chunk, batch, preallocation and eviction
    policy are the suspects, with the value given (by default page 16, chunks of 64, a batch of 4); the
    prefix cache always is. They change no draft in a correct engine: one that does is at fault, and
    what is low without all of them is the head on these prompts. Ends with status 3 where one is at
    fault, or where --expect lies above what other prompts would give.
    """
    from eaglebench.bench import diagnose as use_case
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.effects import sources_of
    from eaglebench.cli.progress_display import progress_display
    from eaglebench.cli.run_command import given_options, run
    from eaglebench.report.suspects import answer, suspects_table
    from eaglebench.report.terminal import render_table

    context = run.make_context("run", [suite, *run_options])
    options = context.params
    if options["suite"] != suite:
        raise UsageError(f"{suite!r} and {options['suite']!r}: expected one suite")
    shown = "none" if options["disable_tqdm"] else options["progress"] or "auto"
    found = use_case.diagnose(
        suite,
        given_options(context),
        expect,
        output_dir=options["output_dir"] or "results",
        sources=sources_of(context),
        progress=progress_display(shown),
        notice=notice,
    )
    title = f"{suite}: each suspect alone, against the plainest cell without a cache"
    render_table(suspects_table(found.suspects, title), stdout_console())
    lines = answer(found.run_id, found.suspects, found.head, found.whole, found.expected)
    click.echo("\n".join(lines))
    return verdict_code(found.judgement.verdict)
