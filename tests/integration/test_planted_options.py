"""An option and an axis planted in a copy of their declarations are carried everywhere by themselves.

The copy changes what a developer would change and nothing else: one field of the configuration with
its option; one axis and the engine's knob. Whatever list had to be kept by hand beside these would
be noticed here as something that is missing.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.architecture.source import PACKAGE, ROOT

OPTION = """
    planted_suffix: Annotated[
        str | None,
        Option(section=QUESTIONS, help="Planted help.", aliases=("--planted-alias",)),
    ] = None
    harmless_colour: Annotated[
        str | None, Option(section=QUESTIONS, help="Planted colour.", affects="nothing")
    ] = None
"""
AXIS = """
    "planted_order": Axis(
        option=Option(section=CACHE, help="Planted axis.", kind="names", aliases=("--order-alias",)),
        words=("lru", "fifo"),
        knob="planted_order",
        spell=where_unusual("planted_order", lambda knobs: knobs.planted_order),
    ),
"""
PLANTS = (
    (
        "plan/question_fields.py",
        "\n    num_questions: Annotated[",
        f"{OPTION}\n    num_questions: Annotated[",
    ),
    ("plan/axes.py", "AXES: dict[str, Axis] = {\n", "AXES: dict[str, Axis] = {" + AXIS),
    (
        "records/knobs.py",
        "    parallel: int = 1\n",
        '    parallel: int = 1\n    planted_order: str = "lru"\n',
    ),
)
SCRIPT = """
import json, sys
from pathlib import Path
from tests.stored_runs import invoke, scripted

def said(*args, **more):
    status, out, err = invoke(*args, **more)
    return {"status": status, "out": out, "err": err}

def run(*args, **more):
    few = ("-n", "2", "--max-new-tokens", "8", "--progress", "none", "-o", "out")
    return said("run", "tiny", *few, *args, **more)

def stored():
    folder = sorted(Path("out/runs").iterdir(), key=lambda path: path.stat().st_mtime)[-1]
    lines = (folder / "requests.jsonl").read_text().splitlines()
    cells = list(dict.fromkeys(json.loads(line)["cell_id"] for line in lines))
    return {"config": json.loads((folder / "run.json").read_text())["config"], "cells": cells}

found = {"help": said("run", "--help"), "aliases": said("help", "aliases")}
with scripted(Path.cwd()):
    two = ("--planted-order", "lru,fifo")
    found["run"] = run(*two, "--planted-alias", "x", "--harmless-colour", "red")
    found["stored"] = stored()
    found["save"] = said("baseline", "save", "base", "--reason", "r", "-o", "out")
    run(*two, "--planted-suffix", "x", "--harmless-colour", "blue")
    found["same"] = said("gate", "--baseline", "base", "-o", "out")
    run(*two, env={"EAGLEBENCH_PLANTED_SUFFIX": "y"})
    found["by_environment"] = stored()
    found["other"] = said("gate", "--baseline", "base", "-o", "out")
    Path("options.toml").write_text('planted-suffix = "z"\\nplanted_order = "fifo"\\n')
    run("--config", "options.toml")
    found["by_file"] = stored()
    found["wrong"] = run("--planted-order", "random")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command line says and stores with the two plants in it."""
    root = tmp_path_factory.mktemp("planted")
    for path in PACKAGE.rglob("*"):
        copy = root / "eaglebench" / path.relative_to(PACKAGE)
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(path)
    (root / "suites").symlink_to(ROOT / "suites")
    for name, old, new in PLANTS:
        text = (PACKAGE / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, name
        (root / "eaglebench" / name).unlink()
        (root / "eaglebench" / name).write_text(text.replace(old, new), encoding="utf-8")
    (work := root / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=work,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_both_have_a_flag_and_a_line_of_help(found: dict[str, Any]) -> None:
    """Also an alias, which help leaves to its own page; a value that can't be is refused by name."""
    for words in (
        "--planted-suffix TEXT",
        "Planted help.",
        "--planted-order NAME",
        "Planted axis.",
    ):
        assert words in found["help"]["out"]
    for alias in ("--planted-alias", "--order-alias"):
        assert alias in found["aliases"]["out"]
        assert alias not in found["help"]["out"]
    assert found["wrong"]["status"] == 2
    assert "--planted-order random; expected one of lru, fifo" in found["wrong"]["err"]


def test_an_axis_makes_cells_with_names_of_their_own(found: dict[str, Any]) -> None:
    """The part of the name stands only where the knob is not as by default."""
    usual = "page1-chunkoff-topk1-steps2-draft3"

    assert found["run"]["status"] == 0, found["run"]["err"]
    assert found["stored"]["cells"] == [usual, f"{usual}-fifo"]
    assert found["stored"]["config"]["matrix"]["axes"]["planted_order"] == ["lru", "fifo"]


def test_an_option_is_recorded_wherever_it_comes_from(found: dict[str, Any]) -> None:
    """By flag or alias, by the environment, and by a file."""
    names = ("stored", "by_environment", "by_file")

    assert [found[name]["config"]["planted_suffix"] for name in names] == ["x", "y", "z"]
    assert found["by_file"]["cells"][0].endswith("-fifo")


def test_what_affects_the_work_makes_runs_incomparable(found: dict[str, Any]) -> None:
    """The gate names the option; one that was declared harmless changes nothing."""
    assert found["save"]["status"] == 0, found["save"]["err"]
    assert found["same"]["status"] == 0, found["same"]["out"]
    assert found["other"]["status"] == 5
    assert "NOT_COMPARABLE" in found["other"]["out"]
    assert "planted_suffix" in found["other"]["out"]
    assert "harmless_colour" not in found["other"]["out"]
