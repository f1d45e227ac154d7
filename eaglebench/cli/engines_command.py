"""`eaglebench engines`: which there are, and whether one comes up and drafts."""

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.records.flags import DEFAULT_OUTPUT


@click.group()
def engines() -> None:
    """Look at the engines that `run --backend` takes."""


@engines.command("list", cls=StatedCommand, needs={})
def list_engines() -> None:
    """Arms and refusals of each engine."""
    from eaglebench.bench.engines import engines as known
    from eaglebench.records.flags import flag_of

    for name, engine in known().items():
        where = "a python of its own (--engine-python)" if engine.is_outside else "this process"
        click.echo(f"{name}: runs in {where}; arms {', '.join(engine.arms)}")
        if engine.refuses:
            click.echo(f"  refuses {', '.join(map(flag_of, engine.refuses))}")


@engines.command(
    cls=StatedCommand,
    needs=always("run_options"),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
def check(run_options: tuple[str, ...]) -> None:
    """Start an engine, run two prompts, and say who it is and what it tells.

    Options are those of `eaglebench run`: --backend, --engine-python, --model, --page-size, ...
    Nothing is written.
    """
    from eaglebench.bench.engines import check_engine_answers
    from eaglebench.cli.console import notice
    from eaglebench.cli.effects import sources_of
    from eaglebench.cli.run_command import given_options, run

    context = run.make_context("run", list(run_options))
    found = check_engine_answers(
        given_options(context),
        output_dir=context.params["output_dir"] or DEFAULT_OUTPUT,
        sources=sources_of(context),
        notice=notice,
    )
    info = found.info
    who = ", ".join(f"{name} {number}" for name, number in (info.engine or {}).items())
    click.echo(f"{info.backend}: {who or 'the engine of this project'}")
    head = f" with head {info.draft_id}" if info.draft_id else ""
    click.echo(f"target {info.target_id}{head}, {info.dtype}, {info.device}")
    for answer in found.answers:
        counts = answer.counters
        told = {
            "prompt tokens": counts.prompt_tokens,
            "cached": counts.cached_tokens,
            "output": counts.output_tokens,
            "verify steps": counts.verify_steps,
            "drafted": counts.drafted,
            "accepted": counts.accepted,
        }
        text = ", ".join(f"{n} {'-' if value is None else value}" for n, value in told.items())
        click.echo(f"{answer.request_id}: {text}; ended by {answer.finish_reason}")
    click.echo(f"not told: {', '.join(found.untold) or 'nothing'}")
