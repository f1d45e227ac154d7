"""`eaglebench help`: pages that would make `--help` too long."""

import click

from eaglebench.cli.effects import StatedCommand
from eaglebench.cli.options import AliasedOption
from eaglebench.cli.run_options import run_parameters
from eaglebench.plan.axes import AXES
from eaglebench.plan.speculative_config import KEYS
from eaglebench.records.flags import flag_of

_COLUMN = 26
_EXAMPLE = """\
  [axes]
  page_size = [1, 16]
  chunked_prefill_size = [-1, 64]

  [[zip]]
  num_steps = [2, 4]
  num_draft_tokens = [3, 5]

  [[exclude]]
  page_size = 16
  chunked_prefill_size = 64
"""


@click.group("help")
def help_topics() -> None:
    """Longer explanations."""


@help_topics.command(cls=StatedCommand, needs={})
def aliases() -> None:
    """Which flags of SGLang, vLLM and other tools `run` understands."""
    click.echo("Options of `eaglebench run` and the names they also answer to")
    click.echo("(underscores work for dashes: --num_steps).\n")
    for param in run_parameters():
        if isinstance(param, AliasedOption) and param.aliases and not param.hidden:
            own = next(name for name in param.opts if name not in param.aliases)
            click.echo(f"  {own:<{_COLUMN}} {', '.join(param.aliases)}")
    click.echo("\n--top-k is refused: elsewhere it means sampling; the draft's is --eagle-topk.")
    click.echo("--num-draft-tokens counts the root: SGLang's 4 is vLLM's")
    click.echo("--num-speculative-tokens 3.")
    click.echo("vLLM's --speculative-config '{...}' is taken as JSON; of its keys")
    for key, name in KEYS.items():
        click.echo(f"  {key:<{_COLUMN}} is {flag_of(name)}")
    click.echo("--draft-sample-method greedy is target-only, probabilistic draft-distribution.")


@help_topics.command("matrix", cls=StatedCommand, needs={})
def matrix_file() -> None:
    """What a file for --matrix holds, and the axes there are."""
    click.echo("A file for --matrix (YAML, TOML or JSON) holds\n")
    for key, meaning in (
        ("axes", "every combination of these values is a cell"),
        ("zip", "groups of axes that move together, with equally many values"),
        ("include", "points to add as they stand"),
        ("exclude", "points to drop: those that agree in every value given"),
    ):
        click.echo(f"  {key:<9} {meaning}")
    click.echo("\nAxes, by these names with underscores or dashes:\n")
    for name, axis in AXES.items():
        off = "" if axis.off is None else f", or {axis.off}"
        numbers = [] if axis.least is None else [f"numbers from {axis.least}{off}"]
        click.echo(f"  {name:<{_COLUMN}} {', '.join([*axis.words, *numbers])}")
        click.echo(f"  {'':<{_COLUMN}} {axis.option.help}")
    click.echo("\nFor example, as TOML:\n\n" + _EXAMPLE)
    click.echo("`eaglebench matrix show FILE` lists its cells; flags take the place of its axes.")


@help_topics.command("exit-codes", cls=StatedCommand, needs={})
def exit_codes() -> None:
    """What the exit status says."""
    for code, meaning in (
        (0, "all went well"),
        (1, "a fault of eaglebench, or the results could not be written"),
        (2, "something asked for can't be done; nothing was measured"),
        (3, "a regression (gate)"),
        (4, "undecided (gate --strict)"),
        (5, "nothing to compare or to show"),
        (130, "interrupted; what was finished is kept"),
    ):
        click.echo(f"  {code:>3}  {meaning}")
