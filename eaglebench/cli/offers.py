"""What the shell offers for a name: suites, models, runs, baselines, cells, questions, files.

Every command has it by the names of its arguments and options, so that a new one has it as well.
Nothing is ever printed or refused from here: where a folder can't be read, nothing is offered.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import click
from click.shell_completion import CompletionItem

from eaglebench.cli.many_type import ManyType
from eaglebench.errors import EaglebenchError
from eaglebench.records.flags import DEFAULT_OUTPUT
from eaglebench.records.knobs import ARMS

Known = Callable[[click.Context], Iterable[str]]
Paths = Literal["file", "dir"]


class OfferedType(click.ParamType[str]):
    """Any text; what is known is offered, and paths where they are meant as well."""

    name = "text"

    def __init__(self, known: Known, paths: Paths | None = None) -> None:
        self.known = known
        self.paths = paths

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Known names that begin so, behind what asks the shell for paths."""
        paths = [CompletionItem(incomplete, type=self.paths)] if self.paths else []
        try:
            names = list(self.known(ctx))
        except (EaglebenchError, OSError, ValueError):
            names = []
        return paths + [CompletionItem(name) for name in names if name.startswith(incomplete)]

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """As it stands."""
        return str(value)


def offer_by_name(params: Sequence[click.Parameter]) -> None:
    """Give each plain text among the parameters of a command what its name says that it is."""
    for param in params:
        kind = _KINDS.get(str(param.name))
        if kind is None:
            continue
        if param.type is click.STRING:
            param.type = kind
        elif isinstance(param.type, ManyType) and param.type.one is click.STRING:
            param.type.one = kind


def _root(ctx: click.Context) -> Path:
    return Path(ctx.params.get("output_dir") or DEFAULT_OUTPUT)


def _suites(_ctx: click.Context) -> Iterable[str]:
    from eaglebench.plan.suite import suite_names

    return suite_names()


def _assets(kind: str) -> Known:
    def known(_ctx: click.Context) -> Iterable[str]:
        from eaglebench.assets.catalog import CATALOG

        return [each.name for each in CATALOG.values() if each.kind == kind]

    return known


def _matrices(_ctx: click.Context) -> Iterable[str]:
    from eaglebench.plan.matrix_file import matrix_names

    return matrix_names()


def _runs(ctx: click.Context) -> Iterable[str]:
    from eaglebench.bench.run_list import run_ids

    return ["latest", "latest~1", *reversed(run_ids(_root(ctx)))]


def _baselines(ctx: click.Context) -> Iterable[str]:
    from eaglebench.bench.baseline import known_baselines

    return known_baselines(_root(ctx))


def _cells(ctx: click.Context) -> Iterable[str]:
    from eaglebench.bench.run_list import names_in_run

    return names_in_run(_root(ctx), ctx.params.get("run") or "latest").cells


def _questions(ctx: click.Context) -> Iterable[str]:
    from eaglebench.bench.run_list import names_in_run

    return names_in_run(_root(ctx), ctx.params.get("run") or "latest").questions


def _arms(_ctx: click.Context) -> Iterable[str]:
    return ARMS


def _none(_ctx: click.Context) -> Iterable[str]:
    return ()


_TARGET = OfferedType(_assets("target"), "dir")
_HEAD = OfferedType(_assets("draft"), "dir")
_RUN, _RUN_OR_FILE = OfferedType(_runs, "dir"), OfferedType(_runs, "file")
_BASELINE, _BASELINE_OR_FILE = OfferedType(_baselines), OfferedType(_baselines, "file")
_MATRIX = OfferedType(_matrices, "file")
_KINDS: dict[str, OfferedType] = {
    "suite": OfferedType(_suites, "file"),
    "model": _TARGET,
    "draft_model": _HEAD,
    "start_from": _HEAD,
    "path": _HEAD,
    "excluded": OfferedType(_assets("questions"), "file"),
    "question_file": OfferedType(_none, "file"),
    "config": OfferedType(_none, "file"),
    "engine_python": OfferedType(_none, "file"),
    "matrix": _MATRIX,
    "file": _MATRIX,
    "run": _RUN,
    "runs": _RUN,
    "against_run": _RUN,
    "resume": _RUN,
    "replay": _RUN_OR_FILE,
    "name": _BASELINE,
    "baseline": _BASELINE_OR_FILE,
    "cell": OfferedType(_cells),
    "question": OfferedType(_questions),
    "arm": OfferedType(_arms),
    "against": OfferedType(_arms),
    "output_dir": OfferedType(_none, "dir"),
}
"""By the name of an argument or option, where it is a plain text."""
