"""What was settled once holds in every command, and the stronger source wins in every case."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eaglebench.cli.main import COMMANDS, main
from eaglebench.cli.output_dir import OutputDirOption
from tests.stored_runs import invoke, make_results, scripted

READING = (
    "show",
    "list",
    "compare",
    "explain latest page1- q1",
    "gate --baseline odd",
    "report --format json",
    "baseline list",
    "baseline show odd",
    "baseline diff odd",
)
"""Commands that read runs or baselines."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `out` holds runs."""
    folder = tmp_path_factory.mktemp("settings")
    make_results(folder)
    (folder / "axes.toml").write_text("[axes]\npage_size = [1, 16]\n", encoding="utf-8")
    return folder


@pytest.fixture
def here(results: Path) -> Iterator[Path]:
    """The command line in that folder, with no settings left behind."""
    with scripted(results):
        yield results
    (results / "pyproject.toml").unlink(missing_ok=True)


def say_in_file(folder: Path, text: str) -> None:
    """Write `[tool.eaglebench]` of the folder's pyproject.toml."""
    (folder / "pyproject.toml").write_text(f"[tool.eaglebench]\n{text}\n", encoding="utf-8")


@pytest.mark.parametrize("command", READING)
def test_one_folder_holds_in_every_command(here: Path, command: str) -> None:
    """The environment and pyproject.toml name it as the flag does; unsaid, nothing is there."""
    flagged = invoke(*command.split(), "-o", "out")
    said = [
        invoke(*command.split(), env={name: "out"})
        for name in ("EAGLEBENCH_OUTPUT_DIR", "EAGLEBENCH_DIR")
    ]
    unsaid = invoke(*command.split())
    say_in_file(here, 'output_dir = "out"\npage_size = [1, 16]')
    said.append(invoke(*command.split()))
    say_in_file(here, 'artifact-dir = "out"')
    said.append(invoke(*command.split()))

    assert [each[:2] for each in said] == [flagged[:2]] * 4
    assert flagged[1] != unsaid[1]


def test_the_flag_comes_before_the_environment_and_that_before_the_file(here: Path) -> None:
    """As for every option of `run`."""
    say_in_file(here, 'output_dir = "out"')

    by_environment = invoke("list", env={"EAGLEBENCH_OUTPUT_DIR": "empty"})[1]
    by_flag = invoke("list", "-o", "none", env={"EAGLEBENCH_OUTPUT_DIR": "empty"})[1]

    assert "no runs in empty/runs" in by_environment
    assert "no runs in none/runs; try: eaglebench run tiny -o none" in by_flag


def test_no_command_settles_the_folder_by_itself() -> None:
    """Every `--output-dir` is the one of all commands, or the one of `run`."""
    context, others = click.Context(main), []
    for name in COMMANDS:
        command = main.get_command(context, name)
        parts = command.commands.values() if isinstance(command, click.Group) else [command]
        others += [
            f"{name} {part.name}"
            for part in parts
            if part is not None and name != "run"
            for parameter in part.params
            if parameter.name == "output_dir" and not isinstance(parameter, OutputDirOption)
        ]

    assert others == []


@pytest.mark.usefixtures("here")
def test_what_to_try_next_names_the_folder() -> None:
    """A command that is copied from a hint finds the same runs."""
    missing = invoke("show", "nosuch", "-o", "out")[2]
    none_yet = invoke("show", "-o", "my runs")[2]
    no_baseline = invoke("gate", "latest", "--baseline", "x", "-o", "out")[2]
    known = invoke("baseline", "save", "odd", "-o", "out", "--reason", "again")[2]

    assert "eaglebench list -o out" in missing
    assert "eaglebench run tiny -o 'my runs'" in none_yet
    assert "there are: odd" in no_baseline
    assert "eaglebench baseline accept odd -o out" in known


@pytest.mark.parametrize(
    ("typed", "unsaid", "notes", "cells"),
    [
        (["--matrix", "axes.toml"], {"PAGE_SIZE": "4"}, ["--page-size"], ["page1", "page16"]),
        (["--matrix", "axes.toml"], {"NUM_STEPS": "3"}, [], ["page1", "page16"]),
        (["--matrix", "axes.toml", "--page-size", "4"], {}, [], ["page4"]),
        (["--num-speculative-tokens", "2"], {"NUM_STEPS": "4"}, ["--num-steps"], ["page1"]),
        (["--num-steps", "2"], {"NUM_SPECULATIVE_TOKENS": "4"}, ["--num-speculative"], ["page1"]),
        (["--disable-radix-cache"], {"ARMS": "radix"}, ["--arms"], ["page1"]),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_was_typed_comes_before_defaults(
    typed: list[str], unsaid: dict[str, str], notes: list[str], cells: list[str]
) -> None:
    """A default that gives way is named; one that does not contradict stands."""
    variables = {f"EAGLEBENCH_{name}": value for name, value in unsaid.items()}

    status, out, err = invoke("run", "tiny", "--dry-run", "--format", "json", *typed, env=variables)

    found = json.loads(out)
    assert status == 0
    assert [name.partition("-")[0] for name in found["cells"]] == cells
    assert len(err.splitlines()) == len(notes)
    assert all(note in err and "gives way to" in err for note in notes)
    assert ("steps3" in out) == ("NUM_STEPS" in unsaid and not notes)


@pytest.mark.usefixtures("here")
def test_a_default_gives_way_to_a_zipped_axis(here: Path) -> None:
    """It was refused, though nobody had typed it."""
    zipped = "[zip]\npage_size = [1, 16]\nchunked_prefill_size = [-1, 64]\n"
    (here / "zipped.toml").write_text(zipped, encoding="utf-8")
    asked = ("run", "tiny", "--dry-run", "--matrix", "zipped.toml")

    assert invoke(*asked, env={"EAGLEBENCH_PAGE_SIZE": "4"})[0] == 0
    assert invoke(*asked, "--page-size", "4")[0] == 2


@pytest.mark.usefixtures("here")
def test_a_dry_run_counts_passes() -> None:
    """For people from the fewest to the most, for programs as numbers."""
    once = json.loads(invoke("run", "tiny", "--dry-run", "--format", "json")[1])
    asked = ("run", "tiny", "--dry-run", "--pairs", "8:40")
    often = json.loads(invoke(*asked, "--format", "json")[1])
    text = invoke(*asked)[1]

    assert once["passes"] == {"least": 1, "most": 1}
    assert often["passes"] == {"least": 8, "most": 40}
    assert often["expected"]["prompts_an_arm"] == once["expected"]["prompts_an_arm"]
    assert often["expected"]["seconds_least"] == pytest.approx(
        8 * once["expected"]["seconds_least"]
    )
    assert often["expected"]["seconds_most"] == pytest.approx(40 * once["expected"]["seconds_most"])
    assert "passes: 8 to 40" in text
    assert "new tokens a pass" in text


@pytest.mark.usefixtures("here")
def test_a_range_of_passes_that_runs_backwards_is_told_what_is_expected() -> None:
    """With an example."""
    status, _, err = invoke("run", "tiny", "--dry-run", "--pairs", "8:4")

    assert status == 2
    assert "expected LEAST:MOST, such as 8:40, with LEAST from 1 and MOST not below it" in err


@pytest.mark.usefixtures("here")
def test_how_a_question_file_was_read_is_said(here: Path) -> None:
    """On standard error, before anything runs."""
    (here / "chats.json").write_text('[{"question": "hi"}, {"question": "ho"}]', encoding="utf-8")

    status, out, err = invoke("run", "tiny", "--dry-run", "--question-file", "chats.json")

    assert status == 0
    assert "2 prompts an arm" in out
    assert err == (
        "note: chats.json: each question is the text of 'question'\n"
        "note: chats.json: records have no ids; they are numbered from 1\n"
    )
