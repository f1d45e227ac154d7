"""Whatever people give to the command line ends in a message and a status of the table.

Every input has a number; the number is the seed, so a failure names what to run again:
`pytest tests/fuzz -k "[17]"` with `NUMBERS` around it.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import click
import pytest

from eaglebench.cli.main import COMMANDS, main
from eaglebench.report.formats import FORMATS
from tests.fuzz.damage import TEXTS, WEIRD, damage_file
from tests.stored_runs import invoke, make_results, scripted

FEW, MANY, BATCH = 300, 2000, 50
"""Inputs of every run, inputs of the slow test, and how many share a test."""
DRY = ("run", "tiny", "-o", "out", "--dry-run")
WET = ("run", "tiny", "-o", "out2", "--progress", "none", "--max-new-tokens", "4")
KNOWN = {0, 2, 3, 4, 5}
SPOKEN = ("can't be written", "can't be made", "nothing can be written", "can't be deleted")
"""A status of 1 needs one of these: only a disk may cause it."""

Input = Callable[[Path, Random], Iterator[tuple[str, ...]]]
MATRIX = {"axes": {"page_size": [1, 16], "num_steps": [2]}, "exclude": [{"page_size": 16}]}
SETTINGS = {"page-size": [1, 16], "max_new_tokens": 8, "label": ["a=b"], "arms": "radix,no-cache"}


def question_file(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A wrong question file, tried out and run."""
    path = folder / "asked.jsonl"
    shutil.copy(folder / "questions.jsonl", path)
    damage_file(path, random)
    wet = WET if random.random() < 0.3 else DRY
    yield (*wet, "--question-file", path.name)


def suite(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A wrong suite."""
    path = folder / "mine.toml"
    source = random.choice(sorted((Path(__file__).parents[2] / "suites").glob("*.toml")))
    text = source.read_text(encoding="utf-8").replace("mtbench-questions", "tiny-questions")
    path.write_text(text, encoding="utf-8")
    damage_file(path, random)
    yield ("run", path.name, "-o", "out", "--dry-run")


def matrix(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A wrong matrix, in every format."""
    ending = random.choice(("json", "yaml", "toml", ""))
    path = folder / f"matrix.{ending}"
    toml = "[axes]\npage_size = [1, 16]\nnum_steps = [2]\n[[exclude]]\npage_size = 16\n"
    yaml = "axes:\n  page_size: [1, 16]\n  num_steps: [2]\nexclude:\n  - page_size: 16\n"
    text = {"json": json.dumps(MATRIX), "toml": toml}.get(ending, yaml)
    path.write_text(text, encoding="utf-8")
    damage_file(path, random)
    yield ("matrix", random.choice(("show", "validate")), path.name)
    yield (*DRY, "--matrix", path.name)


def config_file(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A wrong file of options."""
    ending = random.choice(("json", "yaml", "toml"))
    path = folder / f"settings.{ending}"
    toml = 'page-size = [1, 16]\nmax_new_tokens = 8\narms = "radix,no-cache"\nlabel = ["a=b"]\n'
    yaml = "page-size: [1, 16]\nmax_new_tokens: 8\narms: radix,no-cache\nlabel: [a=b]\n"
    text = {"json": json.dumps(SETTINGS), "toml": toml, "yaml": yaml}[ending]
    path.write_text(text, encoding="utf-8")
    damage_file(path, random)
    yield (*DRY, "--config", path.name)


def project_file(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A wrong pyproject.toml in the folder."""
    path = folder / "pyproject.toml"
    path.write_text("[tool.eaglebench]\npage-size = [1, 16]\nmax_new_tokens = 8\n")
    damage_file(path, random)
    yield DRY


def baseline(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A wrong baseline."""
    damage_file(folder / "out" / "baselines" / "odd.jsonl", random)
    options = ("--baseline", "odd", "-o", "out")
    yield ("gate", "latest~1", *options, *random.choice(((), ("--across-environments",))))
    verbs = (("list",), ("show", "odd"), ("diff", "odd"), ("accept", "odd", "--reason", "x"))
    yield ("baseline", *random.choice(verbs), "-o", "out")
    yield ("report", *options, "--format", random.choice(list(FORMATS)), "--to", "report.out")


def run_folder(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """A run that somebody or something has changed."""
    run = min((folder / "out" / "runs").iterdir())
    names = ("run.json", "requests.jsonl", "blocks.jsonl", "environment.json", "steps.parquet")
    damage_file(run / random.choice(names), random)
    name = ("latest~1", "-o", "out")
    form = ("--format", random.choice(list(FORMATS)), "--to", "report.out")
    yield random.choice((("show", *name), ("report", *name, *form)))
    more: tuple[tuple[str, ...], ...] = (
        ("list", "-o", "out"),
        ("show", *name, "--format", "json"),
        ("gate", *name, "--baseline", "odd"),
        ("gate", *name, "--baseline", "odd", "--fail-on", "throughput:2%", "--fail-on", "al:1%"),
        ("compare", *name),
        ("compare", "latest", "latest~1", "-o", "out", "--format", "json"),
        ("explain", "latest~1", "page1-", "q1", "-o", "out"),
        ("explain", "latest~1", "page16", "7", "--arm", "no-cache", "-o", "out"),
        ("baseline", "save", "new", *name, "--reason", "x", "--allow-dirty"),
        ("run", "-o", "out", "--progress", "none", "--resume", run.name),
    )
    yield random.choice(more)


def environment(_folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """Variables with wrong values; `invoke` gets them by name."""
    names = [p.envvar for p in _options("run") if isinstance(p.envvar, str)]
    name = random.choice([*names, "COLUMNS", "TERM", "GITHUB_STEP_SUMMARY", "EAGLEBENCH_DIR", "CI"])
    value = random.choice([text for text in TEXTS if "\x00" not in text])
    yield ("env", name, value, *random.choice((DRY, ("gate", "-o", "out", "--baseline", "odd"))))


def argument(_folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """Options and arguments with wrong values."""
    bases: tuple[tuple[str, ...], ...] = (
        DRY,
        DRY,
        DRY,
        ("gate", "-o", "out", "--baseline", "odd"),
        ("report", "-o", "out", "--to", "report.out"),
        ("compare", "-o", "out"),
        ("show", "-o", "out"),
        ("list", "-o", "out"),
        ("explain", "latest", "page1-", "q1", "-o", "out"),
        ("suites",),
        ("env",),
    )
    base = random.choice(bases)
    options = [p for p in _options(base[0]) if "--resume" not in p.opts and "--to" not in p.opts]
    more: list[str] = []
    for option in random.sample(options, k=min(len(options), random.choice((1, 2, 4)))):
        more.append(random.choice(option.opts + option.secondary_opts))
        if not option.is_flag:
            more.append(random.choice(_words(option) if random.random() < 0.4 else TEXTS))
    if random.random() < 0.2:
        more.append(random.choice(TEXTS))
    yield (*base, *more)


def replay_file(folder: Path, random: Random) -> Iterator[tuple[str, ...]]:
    """Tokens to replay that nobody generated."""
    path = folder / "replay.jsonl"
    rows = [{"question_id": "q1", "turn": turn, "output_token_ids": [1, 2]} for turn in (0, 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    damage_file(path, random)
    yield (*WET, "--question-file", "questions.jsonl", "--replay", path.name)


KINDS: tuple[Input, ...] = (
    *(question_file, question_file, suite, matrix, config_file, project_file, baseline, baseline),
    *(
        run_folder,
        run_folder,
        run_folder,
        environment,
        environment,
        argument,
        argument,
        replay_file,
    ),
)


def _words(option: click.Option) -> tuple[str, ...]:
    """Values that the option takes, where they are known."""
    if isinstance(option.type, click.Choice):
        return tuple(str(choice) for choice in option.type.choices)
    return ("0", "1", "2", "16", "0.5", "1,16", "a=b", "al:1%", "radix", "odd", "x")


def _options(name: str) -> list[click.Option]:
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None
    return [p for p in command.params if isinstance(p, click.Option) and p.name != "help"]


@pytest.fixture(scope="module")
def seed_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Right files of every kind, which each input damages a copy of."""
    folder = tmp_path_factory.mktemp("corpus")
    make_results(folder)
    return folder


def try_input(number: int, corpus: Path, folder: Path) -> int:
    """Give one wrong input to the command line; the number of statuses that came back."""
    random = Random(number)
    kind = random.choice(KINDS)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(corpus, folder)
    statuses = 0
    with scripted(folder):
        for args in kind(folder, random):
            env: dict[str, str | None] = {}
            if args[0] == "env" and len(args) > 3:
                env, args = {args[1]: args[2]}, args[3:]  # noqa: PLW2901  # taken apart
            try:
                status, _, err = invoke(*args, env=env)
            except Exception as error:
                shown = f"input {number}, {kind.__name__}: {env} {args}"
                raise AssertionError(ascii(shown)[:600]) from error
            told = f"input {number}, {kind.__name__}: {env} {args}: {status} {err}"
            assert status in KNOWN or (status == 1 and any(s in err for s in SPOKEN)), ascii(told)
            assert "fault in eaglebench" not in err, ascii(told)
            assert bool(err) or status != 2, ascii(told)
            statuses += 1
    return statuses


@pytest.mark.parametrize("start", range(0, FEW, BATCH))
def test_wrong_inputs_end_in_a_status(start: int, seed_corpus: Path, tmp_path: Path) -> None:
    """Three hundred of them, no traceback and no status outside the table."""
    tried = [try_input(n, seed_corpus, tmp_path / "x") for n in range(start, start + BATCH)]

    assert sum(tried) >= BATCH


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FEW, FEW + MANY, BATCH))
def test_many_wrong_inputs_end_in_a_status(start: int, seed_corpus: Path, tmp_path: Path) -> None:
    """Two thousand more."""
    tried = [try_input(n, seed_corpus, tmp_path / "x") for n in range(start, start + BATCH)]

    assert sum(tried) >= BATCH


def test_the_inputs_are_of_every_kind_and_the_commands_exist() -> None:
    """The table of kinds names each generator, and none of them uses a command that is gone."""
    assert len(set(KINDS)) == 10
    assert {"run", "gate", "show", "list", "compare", "explain", "report", "suites"} < set(COMMANDS)
    assert len(WEIRD) > 30
