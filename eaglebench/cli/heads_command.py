"""`eaglebench heads`: what lies in a head's folder, and one format written as another."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from eaglebench.contracts.head_report import HeadReport

FORMATS = ("safeailab", "sglang", "speculators")
WRITERS = {
    "safeailab": "SafeAILab/EAGLE, SpecForge",
    "sglang": "SGLang, vLLM, TorchSpec, ModelOpt",
    "speculators": "speculators",
}
_TARGET_HELP = "Target that the head has to fit; its weights are not loaded."


@click.group()
def heads() -> None:
    """Look at a draft head, or write it in another format."""


@heads.command()
@click.argument("path")
@click.option("--model", help=_TARGET_HELP)
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table")
def inspect(path: str, model: str | None, output_format: str) -> None:
    """Show what was recognised in PATH: fields, layers, vocabulary, and where each tensor goes.

    PATH is an asset name, a folder or a Hub id.
    """
    from eaglebench.backends.registry import inspect_head

    target = _folder(model) if model else None
    _show(inspect_head(_folder(path), target), output_format)


@heads.command()
@click.argument("path")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(FORMATS), required=True, help="Format to write.")
@click.option("--model", help=_TARGET_HELP)
@click.option("--format", "output_format", type=click.Choice(("table", "json")), default="table")
def convert(path: str, out: Path, form: str, model: str | None, output_format: str) -> None:
    """Write the head in PATH into the new folder OUT, in another format.

    What the format can't say is refused. With --model the head is held against its target, and a
    speculators config names it.
    """
    from eaglebench.backends.registry import convert_head
    from eaglebench.cli.console import notice

    target = _folder(model) if model else None
    report = convert_head(_folder(path), out, form, target, model)
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
    for line in _lines(report):
        click.echo(line)
    console = stdout_console()
    console.print(_fields(report))
    console.print(_tensors(report))
    for warning in report.warnings:
        click.echo(f"warning: {warning}")


def _lines(report: "HeadReport") -> Iterator[str]:
    kind = "EAGLE (1 or 2)" if report.algorithm == "EAGLE" else report.algorithm
    yield f"{report.path}: {kind}, format {report.form} ({WRITERS[report.form]})"
    if report.target:
        yield f"fits {report.target}"
    written = "-" if report.aux_written is None else _listed(report.aux_written)
    used = "known with --model" if report.aux_layer_ids is None else _listed(report.aux_layer_ids)
    yield f"auxiliary layers: {written} written ({report.aux_counting}); states used: {used}"
    yield f"vocabulary: {_vocabulary(report)}"
    state = "behind" if report.feeds_normed else "in front of"
    if report.algorithm == "EAGLE3":
        yield f"the next level gets the state {state} the head's final norm"
    positions = "no limit" if report.max_positions is None else report.max_positions
    yield f"positions: {positions}"


def _vocabulary(report: "HeadReport") -> str:
    if report.draft_vocab_size is None or not report.has_id_table:
        return f"the target's, {report.vocab_size} ids"
    return f"{report.draft_vocab_size} of {report.vocab_size} ids, by d2t"


def _fields(report: "HeadReport") -> "Table":
    from rich.table import Table

    table = Table("config field", "value", title="read from config.json", title_justify="left")
    for name, value in report.fields.items():
        table.add_row(name, json.dumps(value))
    return table


def _tensors(report: "HeadReport") -> "Table":
    from rich.table import Table

    table = Table("place", "from", "dtype", "shape", title="tensors", title_justify="left")
    for tensor in report.tensors:
        shape = " x ".join(str(size) for size in tensor.shape)
        table.add_row(tensor.place, tensor.source, tensor.dtype, shape)
    for place, source in report.borrowed.items():
        table.add_row(place, source, "", "")
    for name, reason in report.ignored.items():
        table.add_row("-", f"{name} ({reason})", "", "")
    return table


def _listed(ids: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in ids)
