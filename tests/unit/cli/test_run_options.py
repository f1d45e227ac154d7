"""`run --dry-run`: what options mean, before any model is loaded."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.cli.main import main

pytestmark = pytest.mark.usefixtures("questions")

DEFAULT_CELL = "page1-chunkoff-topk1-steps2-draft3"


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A question file, in a working folder without settings."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "q.jsonl"
    path.write_text('{"question_id": 1, "turns": ["hi", "there"]}\n')
    return path


def dry_run(*args: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(
        main, ["run", "mtbench", "--question-file", "q.jsonl", "--dry-run", *args], env=env
    )
    return result.exit_code, result.stdout, result.stderr


def cells(output: str) -> list[str]:
    """Names of the cells that were printed."""
    return [line.strip() for line in output.splitlines() if line.startswith("  page")]


def test_defaults() -> None:
    """One cell, two arms, and a time for two prompts of 256 tokens."""
    status, out, err = dry_run()

    assert (status, err) == (0, "")
    assert cells(out) == [DEFAULT_CELL]
    assert "arms radix, no-cache" in out
    assert "2 prompts an arm, at most 1024 new tokens" in out


@pytest.mark.parametrize(
    "args",
    [
        ["--page-size", "1,16", "--chunked-prefill-size", "-1,64"],
        ["--page-size", "1", "--page-size", "16", "--chunked-prefill-size=-1,64"],
        ["--block-size", "1,16", "--max-num-batched-tokens", "-1,64"],
        ["--page_size", "1,16", "--chunked_prefill_size", "-1,64"],
    ],
)
def test_lists_make_a_matrix(args: list[str]) -> None:
    """A comma list, a repeated flag, another tool's name, underscores: the same four cells."""
    status, out, _ = dry_run(*args)

    assert status == 0
    assert len(cells(out)) == 4


@pytest.mark.parametrize(
    ("args", "cell"),
    [
        (["--speculative-num-steps", "4"], "page1-chunkoff-topk1-steps4-draft5"),
        (["--num_draft_tokens", "5"], "page1-chunkoff-topk1-steps4-draft5"),
        (["--num_spec_tokens", "4"], "page1-chunkoff-topk1-steps4-draft5"),
        (["--algorithm", "none"], "page1-chunkoff-topk1-steps0-draft1"),
        (["--num-steps", "0"], "page1-chunkoff-topk1-steps0-draft1"),
        (["--parallel", "4"], f"{DEFAULT_CELL}-parallel4"),
        (["--swa", "64"], f"{DEFAULT_CELL}-window64"),
    ],
)
def test_names_of_other_tools(args: list[str], cell: str) -> None:
    """SGLang's and vLLM's names mean what they mean there."""
    _, out, err = dry_run(*args)

    assert err == ""
    assert cells(out) == [cell]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--page-size", "0"], "--page-size 0; expected at least 1"),
        (["--page-size", "99999"], "larger than the pool of 16384"),
        (["--page-size", "two"], "not a whole number"),
        (["--page-size", "1,,2"], "nothing between two commas"),
        (["--chunked-prefill-size", "0"], "expected at least 1, or -1 for off"),
        (["--num-steps", "3", "--num-draft-tokens", "10"], "must be 4"),
        (["--eagle-topk", "4", "--num-draft-tokens", "40"], "must be 2 to 21"),
        (["--num-speculative-tokens", "3", "--num-steps", "3"], "can't be given beside it"),
        (["--algorithm", "NONE", "--num-steps", "2"], "drafts nothing"),
        (["--top-p", "0.9"], "error: --top-p is without effect: temperature 0 takes the likeliest"),
        (["--sampling-rule", "draft-distribution", "--eagle-topk", "4"], "expected --eagle-topk 1"),
        (["--use-rejection-sampling", "--sampling-rule", "target-only"], "contradict"),
        (["--sampling-rule", "exact"], "'exact' is not one of 'target-only', 'draft-distribution'"),
        (["--accept-threshold-acc", "0"], "--accept-threshold-acc: input should be greater than 0"),
        (["--accept-threshold-single", "1.1"], "less than or equal to 1"),
        (["--use-rejection-sampling", "--accept-threshold-acc", "0.9"], "has no thresholds"),
        (["--arms", "radics"], "unknown arm 'radics'"),
        (["--arms", "no-cache", "--no-baseline-arm"], "no arm"),
        (["--arms", "radix", "--disable-radix-cache"], "can't be given together"),
        (["--max-new-tokens", "0"], "--max-new-tokens"),
        (["--preallocation", "plenty"], "expected one of none"),
        (["--matrix", "none.yaml"], "no such file"),
        (["--label", "x"], "key=value"),
    ],
)
def test_bad_input_is_refused(args: list[str], words: str) -> None:
    """Status 2, a message on standard error, nothing on standard output."""
    status, out, err = dry_run(*args)

    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_chains_alone_are_left_of_a_matrix_that_draws_drafts() -> None:
    """Trees are skipped with the reason; SGLang's and vLLM's names mean the same rule."""
    for rule in (
        ["--sampling-rule", "draft-distribution"],
        ["--draft-sample-method", "probabilistic"],
        ["--speculative-use-rejection-sampling"],
    ):
        status, out, err = dry_run("--eagle-topk", "1,4", "--temperature", "0.7", *rule)

        assert (status, err) == (0, "")
        assert cells(out.split("skipped 1:")[0]) == [DEFAULT_CELL]
        assert "draws chains" in out.split("skipped 1:")[1]


def test_unknown_suite_offers_names() -> None:
    """Nearest names are offered."""
    result = CliRunner().invoke(main, ["run", "mtbenhc", "--dry-run"])

    assert result.exit_code == 2
    assert "did you mean mtbench?" in result.stderr


def test_broken_question_file_is_refused_before_anything_else(questions: Path) -> None:
    """File and line are named."""
    questions.write_text('{"question_id": 1, "turns": ["hi"]}\n{"question_id": 2, "turns": []}\n')

    status, _, err = dry_run()

    assert status == 2
    assert "q.jsonl:2: question 2: turns is empty" in err


def test_only_the_no_cache_arm() -> None:
    """SGLang's and vLLM's switches leave one arm."""
    for flag in ("--disable-radix-cache", "--no-enable-prefix-caching"):
        assert "arms no-cache\n" in dry_run(flag)[1]


def test_flag_before_environment_before_file(tmp_path: Path) -> None:
    """The order of precedence, one source at a time."""
    config = tmp_path / "settings.toml"
    config.write_text("page-size = [2]\nmax-new-tokens = 7\n")
    env = {"EAGLEBENCH_PAGE_SIZE": "4,8"}

    _, from_file, _ = dry_run("--config", str(config))
    _, from_env, _ = dry_run("--config", str(config), env=env)
    _, from_flag, _ = dry_run("--config", str(config), "--page-size", "16", env=env)

    assert [cell[:6] for cell in cells(from_file)] == ["page2-"]
    assert [cell[:6] for cell in cells(from_env)] == ["page4-", "page8-"]
    assert [cell[:7] for cell in cells(from_flag)] == ["page16-"]
    assert "at most 28 new tokens" in from_file


def test_pyproject_is_read(tmp_path: Path) -> None:
    """`[tool.eaglebench]` of the nearest pyproject.toml gives defaults."""
    (tmp_path / "pyproject.toml").write_text('[tool.eaglebench]\narms = ["radix"]\n')

    assert "arms radix\n" in dry_run()[1]


def test_unknown_setting_is_refused(tmp_path: Path) -> None:
    """A typo in a settings file comes with a suggestion."""
    (tmp_path / "s.yaml").write_text("page_sise: 2\n")

    status, _, err = dry_run("--config", "s.yaml")

    assert status == 2
    assert "did you mean page_size" in err


def test_matrix_file_and_flags(tmp_path: Path) -> None:
    """Flags come before the file's axes; a zipped axis can't be given twice."""
    (tmp_path / "m.yaml").write_text("axes: {page_size: [1, 16], num_steps: [2, 3]}\n")
    (tmp_path / "z.yaml").write_text("zip: {page_size: [1, 16], num_steps: [2, 3]}\n")

    assert len(cells(dry_run("--matrix", "m.yaml")[1])) == 4
    assert len(cells(dry_run("--matrix", "m.yaml", "--num-steps", "5")[1])) == 2
    assert len(cells(dry_run("--matrix", "z.yaml")[1])) == 2
    assert "zips it with others" in dry_run("--matrix", "z.yaml", "--num-steps", "5")[2]


def test_skipped_cells_are_listed() -> None:
    """What is left out is said, with the reason."""
    _, out, _ = dry_run("--page-size", "16,32768")

    assert len(out.split("skipped 1:")[1].splitlines()) >= 2
    assert "larger than the pool" in out


def test_suite_brings_its_own_defaults(questions: Path) -> None:
    """The paged ladder runs at page 16 and compares three arms; a flag comes before that."""
    lines = questions.read_text() * 0 + "\n".join(
        f'{{"question_id": {n}, "turns": ["hello number {n} and some more text"]}}'
        for n in range(9)
    )
    questions.write_text(lines)
    args = ["run", "prefix-ladder-paged", "--question-file", "q.jsonl", "--dry-run"]

    suite = CliRunner().invoke(main, args).stdout
    flag = CliRunner().invoke(main, [*args, "--page-size", "4"]).stdout

    assert "arms unigram, radix, no-cache" in suite
    assert [cell[:7] for cell in cells(suite)] == ["page16-"]
    assert [cell[:6] for cell in cells(flag)] == ["page4-"]


def test_matrix_command(tmp_path: Path) -> None:
    """`matrix show` prints cells, `matrix validate` says whether the file can be run."""
    (tmp_path / "m.yaml").write_text("axes: {page_size: [1, 16]}\n")

    shown = CliRunner().invoke(main, ["matrix", "show", "m.yaml"])
    valid = CliRunner().invoke(main, ["matrix", "validate", "m.yaml"])

    assert len(cells(shown.stdout)) == 2
    assert valid.stdout == "ok: 2 cells, 0 skipped\n"


def test_a_matrix_that_ships_goes_by_name() -> None:
    """In a run and in `matrix show`; the axes of page and chunk that prefix caching must hold on."""
    status, out, _ = dry_run("--matrix", "compatibility")
    shown = CliRunner().invoke(main, ["matrix", "show", "compatibility"])

    assert status == 0
    assert cells(shown.stdout) == cells(out)
    assert [cell.removesuffix("-topk1-steps2-draft3") for cell in cells(out)] == [
        "page1-chunkoff",
        "page1-chunk64",
        "page16-chunkoff",
        "page16-chunk64",
    ]


def test_files_take_every_name_of_an_option(tmp_path: Path) -> None:
    """A key may be any name of the option, such as an earlier one, but only one of them."""
    config = tmp_path / "s.toml"
    config.write_text('pairs = "4:2"\n')
    status, _, err = dry_run("--config", str(config))
    assert (status, "--passes" in err) == (2, True)

    config.write_text('pairs = "2"\npasses = "3"\n')
    status, _, err = dry_run("--config", str(config))
    assert status != 0
    assert "given twice" in err


def test_the_environment_takes_the_earlier_name_of_passes() -> None:
    """`EAGLEBENCH_PAIRS` is read where `EAGLEBENCH_PASSES` is not set."""
    status, _, err = dry_run(env={"EAGLEBENCH_PAIRS": "4:2"})
    assert (status, "--passes" in err) == (2, True)
