"""`--output-dir` of the commands beside `run`: one folder, wherever it was settled."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from eaglebench.cli.option_file import file_values
from eaglebench.cli.options import AliasedOption, env_name
from eaglebench.errors import InputFileError
from eaglebench.plan.option import OUTPUT_DIR
from eaglebench.records.flags import name_of

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FLAG, _SHORT = "--output-dir", OUTPUT_DIR.short or ""


class OutputDirOption(AliasedOption):
    """Comes from the flag, the environment or `[tool.eaglebench]`, as in `run`."""

    def consume_value(
        self, ctx: click.Context, opts: Any
    ) -> tuple[Any, click.core.ParameterSource]:
        """The folder and where it was said."""
        value, source = super().consume_value(ctx, opts)
        if source is not click.core.ParameterSource.DEFAULT:
            return value, source
        try:
            said = _said_in_file()
        except InputFileError:
            if not ctx.resilient_parsing:  # the shell asks for words; a broken file is told later
                raise
            said = None
        return (value, source) if said is None else (said, click.core.ParameterSource.DEFAULT_MAP)


def output_dir_option(help_text: str) -> Callable[[_Command], _Command]:
    """The option of a command that reads runs or baselines."""
    return click.option(
        *(_SHORT, _FLAG, "output_dir"),
        cls=OutputDirOption,
        aliases=OUTPUT_DIR.aliases,
        envvar=[env_name(name_of(_FLAG)), *OUTPUT_DIR.environment],
        default=OUTPUT_DIR.default,
        show_default=True,
        help=help_text,
    )


def _said_in_file() -> str | None:
    """What the nearest pyproject.toml says, by any of the option's names."""
    names = {name_of(flag) for flag in (_FLAG, *OUTPUT_DIR.aliases)}
    said = [value for name, value in file_values().items() if name in names]
    return str(said[0]) if said else None
