"""Plant every declared fault in a copy of the project, and see whether its tests notice.

    python -m tools.mutants.run [--only TEXT] [--jobs N] [--timeout SECONDS]

Status 0: every fault was noticed by every test named for it. 1: one lives, no longer applies, or its
tests took too long to tell.
2: the named tests are red without a fault, so nothing can be said.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.mutants.declared import ROOT, Mutant, StaleMutantError, load

PYTEST = ("-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:randomly", "-p", "no:cacheprovider")
TESTS_FAILED = 1
"""The only status of pytest that says that a test noticed; others say that none could run."""
RED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)

Fate = Literal["killed", "LIVES", "STALE", "BROKEN", "SLOW"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one fault; `detail` names the tests or the reason."""

    mutant: Mutant
    fate: Fate
    detail: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen faults and print what became of each."""
    options = _options(argv)
    chosen = [m for m in load() if options.only in f"{m.name} {m.file}"]
    with tempfile.TemporaryDirectory() as folder:
        copies = [_copy(Path(folder) / str(number)) for number in range(options.jobs)]
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        status, output = _pytest(copies[0], tests, options.timeout * 10)
        if status != 0:
            print(f"without any fault the named tests end with status {status}:\n{output}")
            return 2
        outcomes = _run_all(chosen, copies, options.timeout)
    bad = [outcome for outcome in outcomes if outcome.fate != "killed"]
    print(f"\n{len(outcomes)} faults planted, {len(outcomes) - len(bad)} killed")
    for outcome in bad:
        print(f"  {outcome.fate} {outcome.mutant.name}: {outcome.mutant.what} ({outcome.detail})")
    return 1 if bad else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants.run", description=__doc__)
    parser.add_argument("--only", default="", help="faults whose name or file contains this")
    parser.add_argument("--jobs", type=int, default=1, help="copies that are tried at once")
    parser.add_argument("--timeout", type=int, default=300, help="seconds a fault's tests may take")
    return parser.parse_args(argv)


def _copy(folder: Path) -> Path:
    """A copy of what git knows or would add, as it stands now; ignored files stay behind."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folder


def _run_all(mutants: Sequence[Mutant], copies: Sequence[Path], timeout: int) -> list[Outcome]:
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def run(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            outcome = _plant(mutant, copy, timeout)
        finally:
            free.put(copy)
        print(f"{outcome.fate:<7} {mutant.name:<32} {outcome.detail}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(run, mutants))


def _plant(mutant: Mutant, copy: Path, timeout: int) -> Outcome:
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(mutant.apply(text), encoding="utf-8")
        status, output = _pytest(copy, mutant.tests, timeout)
    except StaleMutantError as error:
        return Outcome(mutant, "STALE", str(error))
    finally:
        path.write_text(text, encoding="utf-8")
    if status is None:
        return Outcome(mutant, "SLOW", f"nothing was noticed within {timeout} s")
    if status not in {0, TESTS_FAILED}:
        return Outcome(mutant, "BROKEN", f"pytest ended with status {status}")
    red = RED.findall(output)
    green = [test for test in mutant.tests if not any(_is_part(name, test) for name in red)]
    if green:
        return Outcome(mutant, "LIVES", f"green: {', '.join(green)}")
    return Outcome(mutant, "killed", ", ".join(test.split("::")[-1] for test in mutant.tests))


def _is_part(name: str, test: str) -> bool:
    """Whether a failed test is `test`, one of its parameters, or inside of its file."""
    return name == test or name.startswith((f"{test}[", f"{test}::"))


def _pytest(copy: Path, tests: Sequence[str], timeout: int) -> tuple[int | None, str]:
    """Status (None: it took too long) and output of the tests in a copy."""
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *PYTEST, *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
