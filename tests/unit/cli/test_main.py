"""The outermost command: speed of help, errors, statuses, aliases."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from eaglebench.cli.main import COMMANDS, main
from eaglebench.cli.options import AliasedOption
from eaglebench.cli.run_options import run_parameters
from eaglebench.plan.axes import AXES


def invoke(*args: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, list(args), env=env)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("args", "allowed"),
    [(["--help"], ""), (["run", "--help"], "pydantic"), (["help", "aliases"], "pydantic")],
)
def test_help_loads_nothing_heavy(args: list[str], allowed: str) -> None:
    """Help loads no torch, no pandas; that of `run` loads pydantic, which holds its options."""
    code = (
        "import sys\nfrom eaglebench.cli.main import main\n"
        f"try:\n    main({args!r})\nexcept SystemExit as left:\n    assert not left.code\n"
        "heavy = {'torch', 'transformers', 'pandas', 'pydantic', 'scipy', 'rich'}\n"
        f"heavy -= {{{allowed!r}}}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr == ""


def test_every_command_can_be_loaded() -> None:
    """The table of commands names what exists."""
    for name in COMMANDS:
        status, out, err = invoke(name, "--help")

        assert (status, err) == (0, ""), name
        assert out.startswith("Usage:")


def test_version() -> None:
    """`--version` prints name and version."""
    status, out, _ = invoke("--version")

    assert status == 0
    assert out.startswith("eaglebench ")


def test_unknown_command_offers_the_nearest() -> None:
    """A typo is a usage error with a suggestion."""
    status, out, err = invoke("runn", "tiny")

    assert status == 2
    assert out == ""
    assert "did you mean run?" in err


def test_top_k_is_refused_with_the_reason() -> None:
    """`--top-k` means sampling in bench_sglang_eagle.py."""
    status, _, err = invoke("run", "tiny", "--top-k", "1")

    assert status == 2
    assert "sampling" in err
    assert "--eagle-topk" in err


def test_aliases_are_listed_and_not_in_help() -> None:
    """Every alias is on the page of aliases and none in `run --help`."""
    _, help_text, _ = invoke("run", "--help")
    _, page, _ = invoke("help", "aliases")
    aliases = [
        alias
        for param in run_parameters()
        if isinstance(param, AliasedOption) and not param.hidden
        for alias in param.aliases
    ]

    assert len(aliases) > 20
    for alias in aliases:
        assert alias in page
        assert f"{alias} " not in help_text


def test_options_are_unique() -> None:
    """No name belongs to two options."""
    names = [name for param in run_parameters() for name in param.opts]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    """A script for each shell, naming the command."""
    status, out, _ = invoke("completion", shell)

    assert status == 0
    assert "_EAGLEBENCH_COMPLETE" in out


def test_suites_are_listed() -> None:
    """Every suite with its version."""
    status, out, _ = invoke("suites")

    assert status == 0
    assert "prefix-ladder" in out
    assert "v1" in out


def test_help_fits_eighty_columns() -> None:
    """Lines of `run --help` are not cut at 80 columns."""
    _, out, _ = invoke("run", "--help", env={"COLUMNS": "80"})

    assert max(len(line) for line in out.splitlines()) <= 80


def test_closed_pipe_is_quiet() -> None:
    """A reader that leaves early causes no traceback."""
    command = f"{sys.executable} -m eaglebench run --help | true"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [
        (["run"], "ti", ["ti", "tiny", "tiny-pages"]),
        (["run", "--arms"], "radix,f", ["radix,force-miss"]),
        (["run", "--preallocation"], "l", ["lookahead-blocks"]),
        (["run", "--dtype"], "b", ["bfloat16"]),
        (["run", "--sampling-rule"], "d", ["draft-distribution"]),
    ],
)
def test_the_shell_offers_values(words: list[str], begun: str, offered: list[str]) -> None:
    """Suites, arms and other words, also behind a comma."""
    shell = ShellComplete(main, {}, "eaglebench", "_EAGLEBENCH_COMPLETE")

    assert [item.value for item in shell.get_completions(words, begun)] == offered


def test_the_page_of_matrix_files_can_be_run(tmp_path: Path) -> None:
    """It names every axis, and its example is a matrix."""
    _, page, _ = invoke("help", "matrix")
    example = page.partition("as TOML:\n\n")[2].partition("\n\n`")[0]
    (tmp_path / "example.toml").write_text(example, encoding="utf-8")
    status, out, err = invoke("matrix", "show", str(tmp_path / "example.toml"))

    assert all(axis in page for axis in AXES)
    assert (status, err) == (0, "")
    assert out.startswith("6 cells:")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run tiny --nope", "no such option '--nope'"),
        ("run tiny --page-size x", "invalid value for '--page-size': 'x' is not a whole number"),
        ("show a b", "got unexpected extra argument (b)"),
        ("explain", "missing argument 'RUN'"),
        ("nope", "no command is called 'nope'"),
        ("run tiny --model nope", "there is no asset, folder or Hub id 'nope'"),
    ],
)
def test_all_errors_look_alike(line: str, words: str) -> None:
    """One line of what is wrong, one of what to try, whoever found it."""
    status, out, err = invoke(*line.split())

    first, second = err.splitlines()
    assert (status, out) == (2, "")
    assert first.startswith(f"error: {words}")
    assert second.startswith("  try: ")


def test_a_command_without_words_is_helped() -> None:
    """That is no error to be told as one."""
    for words in ((), ("help",), ("baseline",)):
        _, out, err = invoke(*words)
        assert (out + err).startswith("Usage: ")


def test_sizes_and_what_is_not_known_are_for_people() -> None:
    """Neither `None` nor 25276059648, nor 0.0 MB of a file that is there."""
    out = invoke("env")[1]
    assets = invoke("assets", "list")[1]

    assert "None" not in out
    assert re.search(r"memory .*\d+\.\d [MG]B", out)
    assert "memory_bytes" not in out
    assert " 0.0 MB" not in assets
    assert re.search(r"tiny-questions .* \d\.\d kB", assets)
