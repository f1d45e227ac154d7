"""`eaglebench train-head`: a draft head for a target, from nothing but the target."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.options import ListType
from eaglebench.plan.option import Need
from eaglebench.records.flags import flag_of
from eaglebench.training.recipe import TrainingRecipe

if TYPE_CHECKING:
    from eaglebench.training.recipe import Acceptance, TrainingReport

_RECIPE = fields(TrainingRecipe)
_FLAGS = {"num_conversations": "--conversations"}
_NO_QUESTIONS = "none"


def _recipe_options(command: Callable[..., None]) -> Callable[..., None]:
    """An option for every field of the recipe, with its default."""
    for field in reversed(_RECIPE):
        flag = _FLAGS.get(field.name, flag_of(field.name))
        is_list, is_open = field.name == "aux_layer_ids", field.default is None
        kind: Any = ListType() if is_list else int if is_open else type(field.default)
        command = click.option(
            *(flag, field.name),
            type=kind,
            default=field.default,
            show_default=not is_open,
            help=field.metadata["help"],
        )(command)
    return command


_NEEDS = {
    **always(
        *("model", "out", "start_from", "conversation_files", "excluded"),
        *("keep_studies", "dtype", "device", "num_threads", "progress"),
        *(field.name for field in _RECIPE),
    ),
    "ngram_words": Need(
        "nothing is excluded", lambda given: set(given["excluded"]) != {_NO_QUESTIONS}
    ),
}


@click.command("train-head", cls=StatedCommand, needs=_NEEDS)
@click.option("--model", required=True, help="Target: an asset name, a folder or a Hub id.")
@click.option(
    *("--output", "out"),
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the head.",
)
@click.option(
    *("--start-from", "start_from"), help="A plain EAGLE-3 head to go on from, as for --model."
)
@click.option(
    "--conversation-file",
    "conversation_files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='Further conversations, {"ids": [...], "answers": [[start, end], ...]} or '
    '{"messages": [{"role": ..., "content": ...}, ...]} a line; repeatable.',
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    default=("mtbench-questions",),
    show_default=True,
    help="Questions that no conversation may share words with: an asset, a file, or none.",
)
@_recipe_options
@click.option(
    "--keep-studies/--no-keep-studies",
    default=True,
    help="Keep the target's states of all conversations on disk (two bytes a number), so that each "
    "is computed once.",
)
@click.option(
    "--dtype",
    type=click.Choice(("bfloat16", "float32")),
    default="bfloat16",
    show_default=True,
    help="Of the target and of the head's products; the head's weights are float32.",
)
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--num-threads", type=int, help="Threads of torch.")
@click.option(
    "--progress",
    type=click.Choice(("auto", "rich", "plain", "none")),
    default="auto",
    show_default=True,
    help="How progress is shown, on standard error.",
)
def train_head(
    *,
    model: str,
    out: Path,
    start_from: str | None,
    conversation_files: tuple[Path, ...],
    excluded: tuple[str, ...],
    dtype: str,
    device: str,
    num_threads: int | None,
    keep_studies: bool,
    progress: str,
    **options: Any,
) -> None:
    """Train an EAGLE-3 head for a target and write it with its figures.

    The target talks with itself: it writes user turns at temperature 1 behind many openings and
    answers them greedily. The head learns the target's distribution over these answers, level after
    level on its own hidden states. Held-out conversations say what it is worth, by position.

    What was done is kept in OUTPUT/training; the same command goes on after Ctrl-C.
    """
    from eaglebench.assets.resolve import resolve_model
    from eaglebench.cli.console import notice
    from eaglebench.cli.progress_display import progress_display
    from eaglebench.files import check_writable
    from eaglebench.training.make_head import HeadMaker
    from eaglebench.training.recipe import TrainingFiles, TrainingMachine

    check_writable(out, hint="choose another --output")
    recipe = TrainingRecipe(**options)
    files = TrainingFiles(
        target=resolve_model(model, notice=notice),
        target_name=model,
        out=out,
        conversations=conversation_files,
        excluded=tuple(_excluded_texts(excluded)),
        start_from=resolve_model(start_from, notice=notice) if start_from else None,
        keeps_studies=keep_studies,
    )
    machine = TrainingMachine(dtype=dtype, device=device, num_threads=num_threads)
    with progress_display(progress, leaves_bars=True) as listener:
        report = HeadMaker(files, recipe, machine, listener).make()
    for line in _summary(report):
        click.echo(line)
    suite = "tiny" if model == "tiny" else "mtbench"
    named = f"--model {shlex.quote(model)} --draft-model {shlex.quote(str(out))}"
    click.echo(f"next: eaglebench run {suite} {named}")


def _excluded_texts(names: tuple[str, ...]) -> Iterator[str]:
    """All turns of the questions named."""
    from eaglebench.assets.catalog import CATALOG
    from eaglebench.assets.fetch import ensure
    from eaglebench.cli.console import notice
    from eaglebench.plan.questions import read_question_file

    for name in names:
        if name == _NO_QUESTIONS:
            continue
        path = ensure(name, notice=notice) if name in CATALOG else Path(name)
        for question in read_question_file(path).questions:
            yield from question.turns


def _summary(report: "TrainingReport") -> Iterator[str]:
    yield f"head: {report.folder}"
    yield (
        f"learned from {report.conversations} conversations of {report.tokens} tokens "
        f"({report.seen_tokens} seen), {report.excluded} left out for shared words; "
        f"{report.coverage:.1%} of their answers can be proposed"
    )
    yield f"held out: {report.held_out} conversations"
    yield f"  before: {_rates(report.before)}"
    yield f"  after:  {_rates(report.after)}"


def _rates(acceptance: "Acceptance") -> str:
    if acceptance.rates is None or acceptance.accepted_per_step is None:
        return "nothing to measure on"
    rates = ", ".join(f"{rate:.3f}" for rate in acceptance.rates)
    return f"acceptance length {1 + acceptance.accepted_per_step:.3f}; by position {rates}"
