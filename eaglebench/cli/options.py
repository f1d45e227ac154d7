"""Options with names from other tools, lists of values, and sections in `--help`."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import click
from click.shell_completion import CompletionItem

from eaglebench.cli.offers import offer_by_name
from eaglebench.errors import UsageError

ENV_PREFIX = "EAGLEBENCH_"
_WHOLE = re.compile(r"-?\d+")


class AliasedOption(click.Option):
    """An option that answers to the names it has in SGLang and vLLM but shows its own only.

    The value can also come from `EAGLEBENCH_<NAME>`.
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        aliases: Sequence[str] = (),
        section: str = "Other",
        **attributes: Any,
    ) -> None:
        attributes.setdefault("envvar", env_name(param_decls[0].removeprefix("--").split("/")[0]))
        super().__init__([*param_decls, *aliases], **attributes)
        self.aliases = tuple(aliases)
        self.section = section

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """How an error calls it: by its own name."""
        return f"'{max((name for name in self.opts if name not in self.aliases), key=len)}'"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The line in `--help`, without aliases."""
        all_names, all_secondary = self.opts, self.secondary_opts
        self.opts = [name for name in all_names if name not in self.aliases]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts, self.secondary_opts = all_names, all_secondary


class SectionedCommand(click.Command):
    """A command whose `--help` lists options by section, in the order they were declared."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        offer_by_name(self.params)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words apart; a list without its commas is told how it is written."""
        self._refuse_spaces(args)
        return super().parse_args(ctx, args)

    def _refuse_spaces(self, args: Sequence[str]) -> None:
        """`--steps 1 2 3` is three values of one option in other tools.

        Raises:
            UsageError: there is such a list.
        """
        lists = {
            name: param.type
            for param in self.params
            if isinstance(param.type, ListType)
            for name in param.opts
        }
        for place, typed in enumerate(args):
            kind = lists.get(typed.replace("_", "-"))
            if kind is None:
                continue
            values = list(takewhile(kind.is_value, args[place + 1 :]))
            if len(values) > 1:
                raise UsageError(
                    f"{typed} {' '.join(values)}: the values of a list stand between commas",
                    hint=f"{typed} {','.join(values)}",
                )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one table a section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                section = param.section if isinstance(param, AliasedOption) else "Help"
                sections.setdefault(section, []).append(record)
        sections["Help"] = sections.pop("Help", [])
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


class ListType(click.ParamType[Any]):
    """A comma list; several of them are joined by `joined`."""

    name = "list"

    def __init__(self, kind: type[int] | type[str] = int, words: Sequence[str] = ()) -> None:
        self.kind = kind
        self.words = tuple(words)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Shown in `--help`."""
        return "N[,N...]" if self.kind is int else "NAME[,NAME...]"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Words that could stand behind the last comma."""
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{word}") for word in self.words if word.startswith(last)
        ]

    def is_value(self, text: str) -> bool:
        """Whether a word of a command line can only be meant for such a list."""
        return text in self.words or (self.kind is int and _WHOLE.fullmatch(text) is not None)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | str, ...]:
        """Split and convert; a value out of a file may be a number or a list already."""
        if isinstance(value, list | tuple):
            parts = list(value)
        else:
            parts = [part.strip() for part in str(value).split(",")]
        return tuple(self._one(part, param, ctx) for part in parts)

    def _one(
        self, part: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        text = str(part)
        if not text:
            self.fail("there is nothing between two commas", param, ctx)
        if self.kind is str or text in self.words:
            return text
        try:
            return int(text)
        except ValueError:
            self.fail(f"{text!r} is not a whole number", param, ctx)


class WordType(click.Choice[str]):
    """One of some words, or another tool's word for one of them."""

    def __init__(self, words: Sequence[str], others: Mapping[str, str]) -> None:
        super().__init__(words)
        self.others = dict(others)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Our word."""
        return super().convert(self.others.get(str(value), value), param, ctx)


class ObjectType(click.ParamType[Any]):
    """A JSON object: as text on the command line, as it is out of a file."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As it stands; who uses it knows what belongs in it."""
        return value if isinstance(value, Mapping) else str(value)


class PairType(click.ParamType[Any]):
    """`key=value`."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first equals sign."""
        if isinstance(value, tuple):
            return (str(value[0]), str(value[1]))
        key, equals, rest = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not of the form key=value", param, ctx)
        return (key, rest)


def joined(values: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """All values of a repeated list option, each once, in the order given."""
    return tuple(dict.fromkeys(value for part in values for value in part))


def env_name(name: str) -> str:
    """The environment variable of an option."""
    return ENV_PREFIX + name.upper().replace("-", "_")


def refuse_top_k(_ctx: click.Context, _param: click.Parameter, value: object) -> None:
    """`--top-k` means sampling elsewhere, so it is not taken as the draft's top-k."""
    if value is not None:
        raise click.UsageError(
            "--top-k means sampling top-k in bench_sglang_eagle.py; for that use --sampling-top-k, "
            "for the branches of a draft tree --eagle-topk"
        )
