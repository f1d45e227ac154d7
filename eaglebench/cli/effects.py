"""What an option needs to have an effect, and what happens to one that has none.

Every command states it for each of its options (a test sees to that). An option that was typed and
changes nothing is refused; one out of the environment or a file, which may be meant for other runs,
is a warning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from eaglebench.errors import UsageError

Sources = Mapping[str, bool]
"""Options that were given, by name: whether they were typed."""


@dataclass(frozen=True, slots=True)
class Need:
    """When an option has an effect.

    Attributes:
        why_not: why it has none where it has none, as half a sentence.
        is_met: asked with what the command knows when it has put its options together.
        is_fatal: whether an option that was typed in vain is refused; False where people repeat the
            command of another run, and only need to hear of it.
    """

    why_not: str
    is_met: Callable[[Any], bool]
    is_fatal: bool = True


ALWAYS = Need("", lambda _: True)


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
    "the number of passes is fixed; it decides between LEAST and MOST of --pairs",
    lambda given: ":" in given["pairs"],
)


class StatedCommand(click.Command):
    """A command that states what each of its options needs, and looks before it runs."""

    def __init__(self, *args: Any, needs: Mapping[str, Need], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.needs = dict(needs)

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse what would be without effect, then run."""
        labels = {str(param.name): _label(param) for param in self.params}
        check_effects(self.needs, sources_of(ctx), ctx.params, labels)
        return super().invoke(ctx)


def sources_of(ctx: click.Context) -> dict[str, bool]:
    """Which options were given, and which of them were typed."""
    found = {}
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source not in {None, ParameterSource.DEFAULT}:
            found[name] = source is ParameterSource.COMMANDLINE
    return found


def check_effects(
    needs: Mapping[str, Need],
    sources: Sources,
    situation: Any,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Hold every option that was given against what it needs.

    Args:
        needs: by option; what is not named here always has an effect.
        sources: the options that were given.
        situation: what the needs are asked with.
        labels: how options are typed, where their names don't tell.

    Raises:
        UsageError: one that was typed is without effect; names all of them.
    """
    from eaglebench.cli.console import notice

    refused = []
    for name, is_typed in sources.items():
        need = needs.get(name, ALWAYS)
        if need.is_met(situation):
            continue
        said = f"{(labels or {}).get(name) or flag_of(name)} is without effect: {need.why_not}"
        if is_typed and need.is_fatal:
            refused.append(said)
        else:
            notice(f"warning: {said}")
    if refused:
        raise UsageError("; ".join(refused), hint="leave it out, or give what it belongs to")


def _label(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        return str(param.name).upper()
    return max(param.opts, key=len)


def flag_of(name: str) -> str:
    """`max_new_tokens` as it is typed."""
    return f"--{name.replace('_', '-')}"
