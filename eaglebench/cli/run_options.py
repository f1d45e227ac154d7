"""The options of `eaglebench run` as click knows them, made from the one table (`plan/options.py`).

No option has a default here: what is not given is settled from the suite and `RunConfig`.
"""

from typing import Any

import click

from eaglebench.cli.many_type import ManyType
from eaglebench.cli.offers import OfferedType
from eaglebench.cli.option_file import apply_option_file
from eaglebench.cli.options import (
    AliasedOption,
    ListType,
    ObjectType,
    PairType,
    WordType,
    env_name,
    refuse_top_k,
)
from eaglebench.plan.option import SESSION, SPECULATION, Option
from eaglebench.plan.options import all_options, default_text, typed_flag

OPTION_FILE_HELP = (
    "File with options; also [tool.eaglebench] in pyproject.toml. A flag comes before "
    "EAGLEBENCH_<OPTION>, and that before the file."
)


def run_parameters() -> list[click.Parameter]:
    """All parameters of `run`, in the order of its help."""
    return [
        click.Argument(["suite"], required=False),
        *(_parameter(name, option) for name, option in all_options().items()),
        AliasedOption(
            ["--top-k"],
            section=SPECULATION,
            hidden=True,
            expose_value=False,
            is_eager=True,
            envvar=None,
            callback=refuse_top_k,
        ),
        AliasedOption(
            ["--config", "-c"],
            aliases=("--scenario",),
            section=SESSION,
            is_eager=True,
            expose_value=False,
            callback=apply_option_file,
            help=OPTION_FILE_HELP,
        ),
    ]


def _parameter(name: str, option: Option) -> AliasedOption:
    flag = typed_flag(name, option)
    variables = [env_name(flag.removeprefix("--")), *option.environment]
    return AliasedOption(
        [flag, *((option.short,) if option.short else ())],
        aliases=option.aliases,
        section=option.section,
        help=_help(name, option),
        hidden=option.is_hidden,
        metavar=_metavar(option),
        envvar=(variables if option.environment else variables[0])
        if option.in_environment
        else None,
        **_typed(option),
    )


def _metavar(option: Option) -> str | None:
    """The unit of a value, or of each value of a list; None leaves it to click."""
    is_list = option.unit is not None and (option.kind in {"numbers", "names"} or option.is_many)
    return f"{option.unit}[,...]" if is_list else option.unit


def _help(name: str, option: Option) -> str:
    default = default_text(name, option)
    return f"{option.help}  [default: {default}]" if default else option.help


def _typed(option: Option) -> dict[str, Any]:
    """What click makes of the words typed."""
    typed = _typed_once(option)
    return (
        typed | {"type": ManyType(click.types.convert_type(typed["type"]))}
        if option.is_many
        else typed
    )


def _typed_once(option: Option) -> dict[str, Any]:
    """The same of an option that has one value."""
    repeated = {"multiple": option.is_repeated}
    if option.alone is not None:
        return {"is_flag": False, "flag_value": option.alone}
    match option.kind:
        case "flag":
            return {"is_flag": True}
        case "choice" if option.synonyms:
            return {"type": WordType(option.words, dict(option.synonyms))}
        case "choice":
            return {"type": click.Choice(option.words, case_sensitive=option.is_case_sensitive)}
        case "numbers" | "names":
            kind = int if option.kind == "numbers" else str
            return {"type": ListType(kind, option.words), **repeated}
        case "object":
            return {"type": ObjectType()}
        case "pair" | "values":
            return {"type": PairType(), "multiple": True}
        case "text" if option.words:
            return {"type": OfferedType(lambda _: option.words), **repeated}
        case _:
            return {"type": {"int": int, "float": float, "text": str}[option.kind], **repeated}
