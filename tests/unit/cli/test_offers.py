"""What the shell offers behind each argument and option that names something."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from eaglebench.bench.stored_run import list_runs, open_run
from eaglebench.cli.main import COMMANDS, main
from tests.stored_runs import QUESTIONS, invoke, make_results, scripted

NOT_NAMES = {
    *("ref_a", "ref_b", "good", "bad"),  # commits, folders, interpreters
    *("reason", "expect", "dtypes", "parallel", "passes", "precision", "allowed", "metric"),
    *(
        "device",
        "renamed",
        "fail_on",
        "arms",
        "label",
        "experiment_name",
        "system_prompt",
        "stop",
        "top_k",
    ),
}
"""Texts that nothing is known of, or whose words are few and stand in the help."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `out` holds two runs and the baseline `odd`."""
    folder = tmp_path_factory.mktemp("offers")
    make_results(folder)
    return folder


@pytest.fixture(autouse=True)
def _here(results: Path) -> Iterator[None]:
    with scripted(results):
        yield


def offered(line: str, begun: str = "") -> list[str]:
    """Values, with `<file>` or `<dir>` where the shell is to offer paths."""
    shell = ShellComplete(main, {}, "eaglebench", "_EAGLEBENCH_COMPLETE")
    found = shell.get_completions(line.split(), begun)
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in found]


@pytest.mark.parametrize(
    ("line", "begun", "expected"),
    [
        ("run", "ti", ["<file>", "tiny", "tiny-pages"]),
        ("run --model", "smol", ["<dir>", "smollm2-135m", "smollm2-135m-swa"]),
        ("run --draft-model", "t", ["<dir>", "tiny-eagle3"]),
        ("run --matrix", "", ["<file>", "compatibility"]),
        ("run --question-file", "", ["<file>"]),
        ("run --config", "", ["<file>"]),
        ("run --device", "", ["cpu", "cuda"]),
        ("run --attention-backend", "p", ["padded"]),
        ("run --output-dir", "", ["<dir>"]),
        ("ab --a x --b y", "ti", ["<file>", "tiny", "tiny-pages"]),
        ("matrix show", "c", ["<file>", "compatibility"]),
        ("heads inspect", "ti", ["<dir>", "tiny-eagle3"]),
        ("train-head --exclude", "mt", ["<file>", "mtbench-questions"]),
        ("gate -o out --baseline", "", ["<file>", "odd"]),
        ("baseline show -o out", "", ["odd"]),
        ("baseline show", "", []),
        ("explain -o out --arm", "uni", ["unigram"]),
    ],
)
def test_names_and_paths_are_offered(line: str, begun: str, expected: list[str]) -> None:
    """What is known by name, and paths where they can stand."""
    assert offered(line, begun) == expected


def test_runs_their_cells_and_their_questions_are_offered() -> None:
    """The newest run first, of the folder that was given or settled."""
    runs = [run.run_id for run in list_runs("out")]
    cells = open_run("latest", "out").manifest["cells"]

    for command in ("show", "report", "gate", "compare", "compare latest~1", "run tiny --resume"):
        found = offered(f"{command.partition(' ')[0]} -o out {command.partition(' ')[2]}")
        assert found == ["<dir>", "latest", "latest~1", *reversed(runs)], command
    assert offered("explain -o out latest") == cells
    assert offered("explain -o out latest -") == list(QUESTIONS)
    assert offered("explain -o out nosuch") == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EAGLEBENCH_OUTPUT_DIR", "out")
        assert offered("baseline show") == ["odd"]


def test_every_text_that_names_something_is_offered() -> None:
    """A new argument is offered by its name, or stands among those of which nothing is known."""
    context, silent = click.Context(main), []
    for name in COMMANDS:
        command = main.get_command(context, name)
        parts = command.commands.values() if isinstance(command, click.Group) else [command]
        silent += [
            f"{name}: {param.name}"
            for part in parts
            if part is not None
            for param in part.params
            if param.type is click.STRING and param.name not in NOT_NAMES and not param.hidden  # type: ignore[attr-defined]  # of options alone
        ]

    assert silent == []


def test_the_help_of_run_names_units() -> None:
    """Tokens, slots and files instead of whole numbers and texts."""
    out = invoke("run", "--help")[1]

    for words in ("--max-new-tokens TOKENS", "--max-total-tokens SLOTS", "--page-size SLOTS[,...]"):
        assert words in out
    assert "--question-file FILE" in out
    assert "row by row, or rows padded" in " ".join(out.split())
