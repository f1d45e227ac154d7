"""A group whose commands are imported when they are used: `--help` stays fast."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group that knows its commands by a table of what each does in one line.

    The command `a-name` is the one of that name in `cli/a_name_command.py`.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None when there is none of that name."""
        if cmd_name not in self.lazy:
            return None
        module = import_module(f"eaglebench.cli.{cmd_name.replace('-', '_')}_command")
        found = (each for each in vars(module).values() if isinstance(each, click.Command))
        return next(each for each in found if each.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Offer the nearest names for an unknown one."""
        name = args[0]
        if not name.startswith("-") and name not in self.lazy:
            near = get_close_matches(name, list(self.lazy), n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "see eaglebench --help"
            raise click.UsageError(f"no command is called {name!r}; {hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lazy.items()))
