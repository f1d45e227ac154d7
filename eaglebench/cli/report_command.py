"""`eaglebench report`: a stored run in a format for people or for other tools."""

from pathlib import Path

import click

from eaglebench.cli.effects import StatedCommand, always, beside
from eaglebench.cli.exit_codes import shown_code
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.records.words import sized
from eaglebench.report.formats import FORMATS, render


@click.command(
    cls=StatedCommand,
    needs=always("form", "baseline", "to", "output_dir") | {"fail_on": beside("baseline")},
)
@click.argument("run", default="latest")
@click.option(
    "--format", "form", type=click.Choice(tuple(FORMATS)), default="html", show_default=True
)
@click.option("--baseline", help="Judge against this baseline; by default arms against no-cache.")
@click.option(
    "--fail-on", multiple=True, metavar="METRIC:LOSS", help="Rules for --baseline, as in gate."
)
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: report.html in the run's folder; other formats are printed]",
)
@output_dir_option("Where runs are.")
def report(
    run: str,
    *,
    form: str,
    baseline: str | None,
    fail_on: tuple[str, ...],
    to: Path | None,
    output_dir: str,
) -> int:
    """Write RUN (an id, a path, `latest`) as a report."""
    from eaglebench.bench.api import judged_document, load
    from eaglebench.cli.console import notice
    from eaglebench.files import make_folder, write_text

    opened = load(run, output_dir=output_dir, notice=notice)
    if baseline is None:
        document = opened.document
    else:
        document = judged_document(
            opened, baseline=baseline, fail_on=fail_on, output_dir=output_dir, notice=notice
        )
    text = render(form, document)
    if to is None and form != "html":
        click.echo(text, nl=not text.endswith("\n"))
        return shown_code(document.doubts, document.places)
    path = to or opened.path / "report.html"
    make_folder(path.parent)
    write_text(path, text)
    notice(f"{path}: {sized(path.stat().st_size)}")
    return shown_code(document.doubts, document.places)
