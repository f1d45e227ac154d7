"""Several values between commas where a run has one: a run of each."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem


class ManyType(click.ParamType[Any]):
    """One value, or several between commas, of which each makes a run."""

    name = "values"

    def __init__(self, one: click.ParamType[Any]) -> None:
        self.one = one

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """As for one."""
        return self.one.get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """What could stand behind the last comma."""
        before, comma, last = incomplete.rpartition(",")
        found = self.one.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{each.value}", type=each.type) for each in found]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """One value as it is, several as a tuple."""
        parts = value if isinstance(value, list | tuple) else values_typed(str(value))
        if "" in parts:
            self.fail("there is nothing between two commas", param, ctx)
        values = tuple(self.one.convert(part, param, ctx) for part in parts)
        return values[0] if len(values) == 1 else values


def values_typed(text: str) -> tuple[str, ...]:
    """What stands between commas, each once; a path that exists is one value whatever is in it."""
    if "," not in text or Path(text).exists():
        return (text,)
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))
