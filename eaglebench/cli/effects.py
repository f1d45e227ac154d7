"""What an option needs to have an effect, and what happens to one that has none.

Every command states it for each of its options (a test sees to that). An option that was typed and
changes nothing is refused; one out of the environment or a file, which may be meant for other runs,
is a warning.
"""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from eaglebench.cli.offers import offer_by_name
from eaglebench.plan.option import ALWAYS, FIXED_PASSES, Need, check_effects
from eaglebench.records.flags import flag_of


def always(*names: str) -> dict[str, Need]:
    """Options that have an effect whatever else is given."""
    return dict.fromkeys(names, ALWAYS)


def beside(name: str) -> Need:
    """The option belongs to another one."""
    flag = flag_of(name)
    return Need(f"it belongs to {flag}, which is not given", lambda given: bool(given.get(name)))


def without(name: str) -> Need:
    """Another option takes this one's place."""
    return Need(f"{flag_of(name)} takes its place", lambda given: not given.get(name))


HAS_RANGE = Need(
    FIXED_PASSES,
    lambda given: ":" in given["passes"],
)


class StatedCommand(click.Command):
    """A command that states what each of its options needs, and looks before it runs."""

    def __init__(self, *args: Any, needs: Mapping[str, Need], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.needs = dict(needs)
        offer_by_name(self.params)

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse what would be without effect, then run."""
        from eaglebench.cli.console import notice

        labels = {str(param.name): _label(param) for param in self.params}
        check_effects(self.needs, sources_of(ctx), ctx.params, labels, notice=notice)
        return super().invoke(ctx)


def sources_of(ctx: click.Context) -> dict[str, bool]:
    """Which options were given, and which of them were typed."""
    found = {}
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source not in {None, ParameterSource.DEFAULT}:
            found[name] = source is ParameterSource.COMMANDLINE
    return found


def _label(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        return str(param.name).upper()
    return max(param.opts, key=len)
