"""Declared faults fit the source they are planted in; `make mutants` plants and runs them."""

import ast
from collections import Counter

import pytest

from tests.architecture.source import ROOT, functions_of
from tools.mutants.declared import Mutant, StaleMutantError, load

MUTANTS = load()


def stale(mutant: Mutant) -> list[str]:
    """Why a declared fault can't be planted, or its tests can't be run."""
    try:
        text = mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8"))
        ast.parse(text)
    except (OSError, StaleMutantError, SyntaxError) as error:
        return [str(error)]
    found = [] if mutant.tests else [f"{mutant.name}: names no test"]
    if mutant.new == mutant.old:
        found.append(f"{mutant.name}: changes nothing")
    return found + [f"{mutant.name}: no test {test}" for test in mutant.tests if not _exists(test)]


def _exists(test: str) -> bool:
    name, _, function = test.partition("::")
    path = ROOT / name
    if not path.is_file():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return not function or any(each.name == function for each in functions_of(tree))


def make_mutant(**changes: str | tuple[str, ...]) -> Mutant:
    """A fault that fits this file."""
    values: dict[str, str | tuple[str, ...]] = {
        "name": "toy",
        "what": "nothing",
        "file": "tests/architecture/source.py",
        "old": "import ast\n",
        "new": "import ast as ast\n",
        "tests": ("tests/architecture/test_mutants.py::test_names_are_unique",),
        **changes,
    }
    return Mutant(**values)  # type: ignore[arg-type]  # one of its fields is a tuple


def test_every_declared_fault_can_be_planted() -> None:
    """The old text stands there once, the result is Python, and the named tests exist."""
    assert MUTANTS
    assert [line for mutant in MUTANTS for line in stale(mutant)] == []


def test_names_are_unique() -> None:
    """A name chooses one fault."""
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"old": "import asp\n"},
        {"old": "import"},
        {"new": "import (\n"},
        {"new": "import ast\n"},
        {"file": "eaglebench/nowhere.py"},
        {"tests": ()},
        {"tests": ("tests/architecture/test_mutants.py::test_nothing",)},
    ],
)
def test_a_fault_that_does_not_fit_is_named(changes: dict[str, str | tuple[str, ...]]) -> None:
    """Text that is gone or there twice, no Python, no change, no file, no test."""
    assert stale(make_mutant()) == []
    assert stale(make_mutant(**changes))
