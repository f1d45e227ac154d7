"""`eaglebench heads`: what lies in a head's folder, and one format written as another."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.options import ListType, PairType
from eaglebench.plan import draft_config

if TYPE_CHECKING:
    from rich.table import Table

    from eaglebench.training.heads import HeadReport

FORMATS = ("safeailab", "sglang", "speculators")
WRITERS = {
    "safeailab": "SafeAILab/EAGLE, SpecForge",
    "sglang": "SGLang, vLLM, TorchSpec, ModelOpt",
    "speculators": "speculators",
}
_AUX_HELP = (
    "States of the target that feed the head, whatever its config says: id k is the one after k "
    "layers."
)
_TARGET_HELP = "Target that the head has to fit; its weights are not loaded."


@click.group()
def heads() -> None:
    """Look at a draft head, or write it in another format."""


@heads.command(cls=StatedCommand, needs=always("model", "aux_layer_ids", "fields", "output_format"))
@click.argument("path")
@click.option("--model", help=_TARGET_HELP)
@click.option("--aux-layer-ids", type=ListType(), help=_AUX_HELP)
@click.option(draft_config.NAME, "fields", type=PairType(), multiple=True, help=draft_config.HELP)
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table")
def inspect(
    path: str,
    model: str | None,
    aux_layer_ids: tuple[int, ...] | None,
    fields: tuple[tuple[str, str], ...],
    output_format: str,
) -> None:
    """Show what was recognised in PATH: fields, layers, vocabulary, and where each tensor goes.

    PATH is an asset name, a folder or a Hub id.
    """
    from eaglebench.training.heads import inspect_head

    target = _folder(model) if model else None
    changes = draft_config.parse_values(fields)
    _show(inspect_head(_folder(path), target, aux_layer_ids, changes), output_format)


@heads.command(
    cls=StatedCommand, needs=always("form", "model", "aux_layer_ids", "fields", "output_format")
)
@click.argument("path")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(FORMATS), required=True, help="Format to write.")
@click.option("--model", help=_TARGET_HELP)
@click.option("--aux-layer-ids", type=ListType(), help=_AUX_HELP)
@click.option(draft_config.NAME, "fields", type=PairType(), multiple=True, help=draft_config.HELP)
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table")
def convert(
    path: str,
    out: Path,
    form: str,
    model: str | None,
    aux_layer_ids: tuple[int, ...] | None,
    fields: tuple[tuple[str, str], ...],
    output_format: str,
) -> None:
    """Write the head in PATH into the new folder OUT, in another format.

    What the format can't say is refused. With --model the head is held against its target, and a
    speculators config names it.
    """
    from eaglebench.cli.console import notice
    from eaglebench.training.heads import convert_head

    target = _folder(model) if model else None
    changes = draft_config.parse_values(fields)
    report = convert_head(_folder(path), out, form, target, model, aux_layer_ids, changes)
    if form == "speculators" and model is None:
        notice("the config names no verifier; --model would")
    _show(report, output_format)


def _folder(name: str) -> Path:
    from eaglebench.assets.resolve import resolve_model
    from eaglebench.cli.console import notice

    return resolve_model(name, notice=notice)


def _show(report: "HeadReport", output_format: str) -> None:
    from dataclasses import asdict

    from eaglebench.cli.console import stdout_console

    if output_format == "json":
        click.echo(json.dumps(asdict(report), indent=1))
        return
    console = stdout_console()
    console.print(_summary(report))
    console.print(_fields(report))
    console.print(_tensors(report))
    for warning in report.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False)


def _summary(report: "HeadReport") -> "Table":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")  # a long path is not cut
    for name, text in _findings(report):
        table.add_row(name, text)
    return table


def _findings(report: "HeadReport") -> Iterator[tuple[str, str]]:
    is_eagle3 = report.algorithm == "EAGLE3"
    yield "head", report.path
    yield "kind", "EAGLE-3" if is_eagle3 else "EAGLE-1 or EAGLE-2, whose heads are alike"
    yield "format", f"{report.form}, as written by {WRITERS[report.form]}"
    yield "target", f"{report.target}: the head fits" if report.target else "not named (--model)"
    yield "features", _states(report)
    if report.aux_written is not None:
        yield "", f"config.json says {_listed(report.aux_written)}"
    yield "", report.aux_counting
    if is_eagle3:
        yield "next level", f"takes the state {_side(report)} the head's final norm"
    yield "vocabulary", _vocabulary(report)
    yield "embeddings", report.embeddings
    limit = report.max_positions
    yield "positions", f"{limit}; nothing is proposed past them" if limit else "no limit"
    yield "window", f"the last {report.window} positions" if report.window else "none"
    yield "rotary", report.rotary
    if report.draft_config:
        said = ", ".join(
            f"{name} {json.dumps(value)}" for name, value in report.draft_config.items()
        )
        yield "said otherwise", said
    for place, name in _renames(report).items():
        yield "names", f"{name}.* is {place}.* here"


def _states(report: "HeadReport") -> str:
    if report.aux_layer_ids is None:
        return "states of the target that are known with --model"
    plural = "s" if len(report.aux_layer_ids) > 1 else ""
    return f"state{plural} {_listed(report.aux_layer_ids)} of the target"


def _side(report: "HeadReport") -> str:
    return "behind" if report.feeds_normed else "in front of"


def _vocabulary(report: "HeadReport") -> str:
    if report.draft_vocab_size is None or not report.has_id_table:
        return f"the target's, {report.vocab_size} ids"
    return f"{report.draft_vocab_size} of the target's {report.vocab_size} ids, by d2t"


def _renames(report: "HeadReport") -> dict[str, str]:
    """Beginnings of places that are called otherwise in the file, and what they are called."""
    found: dict[str, str] = {}
    for tensor in report.tensors:
        place, source = tensor.place.split("."), tensor.source.split(".")
        while place and source and place[-1] == source[-1]:
            place, source = place[:-1], source[:-1]
        if place and source:
            found[".".join(place)] = ".".join(source)
    return found


def _fields(report: "HeadReport") -> "Table":
    from rich.table import Table

    table = Table()
    for title in ("field of config.json", "value"):
        table.add_column(title, overflow="fold")
    for name, value in report.fields.items():
        table.add_row(name, json.dumps(value))
    return table


def _tensors(report: "HeadReport") -> "Table":
    """By the names in the file; what is borrowed or not used comes last."""
    from rich.table import Table

    table = Table()
    table.add_column("tensor", no_wrap=True)
    table.add_column("dtype and shape")
    for tensor in report.tensors:
        shape = " x ".join(str(size) for size in tensor.shape)
        table.add_row(tensor.source, f"{tensor.dtype} {shape}")
    for place, source in report.borrowed.items():
        table.add_row(place, f"not in the file: {source}")
    for name, reason in report.ignored.items():
        table.add_row(name, reason)
    return table


def _listed(ids: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in ids)
