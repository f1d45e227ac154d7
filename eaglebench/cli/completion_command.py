"""`eaglebench completion`: a script for the shell."""

import click
from click.shell_completion import get_completion_class

from eaglebench.cli.effects import StatedCommand


@click.command(cls=StatedCommand, needs={})
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script.

    \b
    bash:  eval "$(eaglebench completion bash)"
    zsh:   eval "$(eaglebench completion zsh)"
    fish:  eaglebench completion fish | source
    """  # noqa: D301  # \b is click's mark for text that is not wrapped
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "eaglebench", "_EAGLEBENCH_COMPLETE")
    click.echo(script.source())
