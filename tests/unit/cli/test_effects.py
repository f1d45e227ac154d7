"""No option is passed over: each states what it needs, and one that changes nothing is told so."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eaglebench.cli.effects import StatedCommand
from eaglebench.cli.main import COMMANDS, main
from eaglebench.plan.options import all_options, parameter_of
from tests.stored_runs import invoke, make_results, scripted

NOT_ASKED = {"help", "config", "top_k"}
"""Options whose callbacks have done everything before a command begins."""
OF_RUN = {parameter_of(name, option) for name, option in all_options().items()}
SUITE_OF_EDGES = """
name = "edges"
version = 1
description = "fixes its prompts"
[questions]
asset = "tiny-questions"
[workload]
kind = "page-edges"
"""

IN_VAIN: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    # the command, what is without effect there, why, and what has to be added for an effect
    ("run edges.toml", ("--max-new-tokens", "3"), "fixes how long", ()),
    ("run edges.toml", ("--system-prompt", "x"), "fixes its prompts", ()),
    ("run edges.toml", ("--prompt-format", "raw"), "fixes its prompts", ()),
    ("run tiny", ("--top-p", "0.9"), "temperature 0", ("--temperature", "1")),
    ("run tiny", ("--sampling-top-k", "5"), "temperature 0", ("--temperature", "1")),
    ("run tiny", ("--sampling-rule", "draft-distribution"), "drawn", ("--temperature", "1")),
    ("run tiny", ("--use-rejection-sampling",), "drawn", ("--temperature", "1")),
    ("run tiny", ("--accept-threshold-acc", "0.9"), "drawn", ("--temperature", "1")),
    ("run tiny", ("--accept-threshold-single", "0.9"), "drawn", ("--temperature", "1")),
    ("run tiny --algorithm none --temperature 1", ("--accept-threshold-acc", "0.9"), "drawn", ()),
    ("run tiny --algorithm none", ("--draft-model", "tiny-eagle3"), "nothing is drafted", ()),
    ("run tiny --algorithm none", ("--aux-layer-ids", "1"), "nothing is drafted", ()),
    ("run tiny --num-steps 0", ("--eagle-topk", "4"), "nothing is drafted", ("--num-steps", "2")),
    (
        "run tiny --num-steps 0",
        ("--draft-model", "tiny-eagle3"),
        "nothing is drafted",
        ("--num-steps", "2"),
    ),
    ("run tiny", ("--preallocate-tokens", "9"), "no cell", ("--preallocation", "covered")),
    ("run tiny", ("--precision", "2%"), "passes is fixed", ("--passes", "2:4")),
    ("run tiny --pairs 8", ("--precision", "2%"), "passes is fixed", ()),
    ("run tiny", ("--question-field", "prompt=text"), "--question-file", ()),
    ("run tiny --arms radix", ("--no-baseline-arm",), "no-cache is not among", ()),
    ("run tiny --disable-tqdm", ("--progress", "plain"), "--disable-tqdm takes its place", ()),
    ("run --resume latest", ("--num-steps", "3"), "keeps its own options", ()),
    ("run --resume latest", ("--seed", "3"), "keeps its own options", ()),
    ("report", ("--fail-on", "al:1%"), "--baseline, which is not given", ("--baseline", "odd")),
    ("calibrate tiny --pairs 8", ("--precision", "2%"), "passes is fixed", ()),
    ("ab --a x --b y tiny --pairs 8", ("--precision", "2%"), "passes is fixed", ()),
    ("explain latest page1- q1 --arm unigram", ("--against", "unigram"), "the arm itself", ()),
    ("baseline accept odd --from-ci out", ("latest",), "--from-ci takes its place", ()),
    (
        "train-head --model x --output y --exclude none",
        ("--ngram-words", "5"),
        "nothing is excluded",
        (),
    ),
)
HARMLESS: tuple[str, ...] = (
    "run tiny --dry-run --top-p 1",
    "run tiny --dry-run --sampling-rule target-only",
    "run tiny --dry-run --num-steps 0 --eagle-topk 1",
    "run tiny --dry-run --arms radix,no-cache --no-baseline-arm",
    "run tiny --dry-run --num-steps 0,2 --eagle-topk 2",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds `out`, and a suite that fixes its prompts."""
    folder = tmp_path_factory.mktemp("effects")
    make_results(folder)
    (folder / "edges.toml").write_text(SUITE_OF_EDGES, encoding="utf-8")
    return folder


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its full name."""
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", each) for sub, each in command.commands.items())
        else:
            yield name, command


def dry(command: str) -> tuple[str, ...]:
    """The words of a command over the results, without a measurement."""
    words = tuple(command.split())
    if words[:2] == ("run", "--resume") or words[0] not in {"run", "report"}:
        return words
    return (*words, *(("--dry-run",) if words[0] == "run" else ("--to", "report.out")))


def test_every_option_says_what_it_needs() -> None:
    """Also the ones that always have an effect; a new option that says nothing fails here."""
    silent, unknown = [], []
    for name, command in all_commands():
        options = {p.name for p in command.params if isinstance(p, click.Option)} - NOT_ASKED
        needs = set(command.needs) if isinstance(command, StatedCommand) else OF_RUN
        assert isinstance(command, StatedCommand) or name == "run"
        silent += [f"{name}: {option}" for option in options - needs]
        unknown += [f"{name}: {need}" for need in needs - {p.name for p in command.params}]

    assert (silent, unknown) == ([], [])


@pytest.mark.parametrize(("command", "option", "why", "more"), IN_VAIN)
def test_an_option_without_effect_is_refused(
    results: Path, command: str, option: tuple[str, ...], why: str, more: tuple[str, ...]
) -> None:
    """Status 2 before anything is computed, with the reason; with what it needs it is taken."""
    with scripted(results):
        status, out, err = (
            invoke(*dry(command), *option, "-o", "out")
            if (not command.startswith("train"))
            else invoke(*dry(command), *option)
        )
        taken = invoke(*dry(command), *option, *more, "-o", "out") if more else (0, "", "")

    assert (status, out) == (2, ""), err
    name = option[0] if option[0].startswith("--") else "RUN"
    assert f"error: {name} is without effect" in err
    assert why in err
    assert taken[0] == 0, taken


@pytest.mark.parametrize("command", HARMLESS)
def test_what_asks_for_what_happens_anyway_is_taken(results: Path, command: str) -> None:
    """A default that is typed, and an option that has an effect in one cell of several."""
    with scripted(results):
        status, _, err = invoke(*command.split())

    assert (status, err) == (0, "")


def test_from_a_file_or_the_environment_it_is_a_warning(results: Path) -> None:
    """Settings are made for many runs: they are told once, and the run goes on."""
    (results / "settings.toml").write_text("top_p = 0.9\n", encoding="utf-8")
    with scripted(results):
        by_file = invoke("run", "tiny", "--dry-run", "--config", "settings.toml")
        by_environment = invoke("run", "tiny", "--dry-run", env={"EAGLEBENCH_TOP_P": "0.9"})
        typed = invoke("run", "tiny", "--dry-run", "--top-p", "0.8", env={"EAGLEBENCH_TOP_P": "1"})

    for status, _, err in (by_file, by_environment):
        assert status == 0
        assert err.count("warning: --top-p is without effect") == 1
    assert typed[0] == 2


def test_a_replay_tells_of_a_limit_that_it_overrules(results: Path) -> None:
    """People add --replay to the command of the run that they replay."""
    asked = ("--question-file", "questions.jsonl", "--max-new-tokens", "4", "--replay", "latest")
    with scripted(results):
        status, _, err = invoke("run", "tiny", "--dry-run", "-o", "out", *asked)

    assert status == 0
    assert "warning: --max-new-tokens is without effect: --replay ends every answer" in err


@pytest.mark.parametrize("command", ["gate --baseline odd", "compare latest~1 latest"])
@pytest.mark.parametrize(
    "pair", ["unigram=none", "none=radix", "no-cache=radix,unigram=radix", "unigram=unigram"]
)
def test_arms_that_are_not_there_are_named(results: Path, command: str, pair: str) -> None:
    """`--as` names an arm of this run and one of the other side, each side once."""
    renames = [word for each in pair.split(",") for word in ("--as", each)]
    with scripted(results):
        status, _, err = invoke(*command.split(), *renames, "-o", "out")

    assert status == 2
    assert "--as" in err
