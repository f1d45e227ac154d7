"""Planted faults as data: `faults/*.toml`, one file for each part of the package.

Each entry is one edit and the tests that have to go red when it is made:

    [[mutant]]
    name = "hit-cap"                          # unique among all files
    what = "a hit may cover one token more"   # what goes wrong for a user
    file = "eaglebench/kv/radix_cache.py"
    old = "limit = length - 1"                # occurs exactly once in the file
    new = "limit = length"
    tests = ["tests/unit/kv/test_radix_cache.py::test_a_hit_leaves_one_token"]

`old` and `new` may span lines (TOML's triple quotes). Each test of `tests` has to fail by itself:
the one that was written for this fault, not every one that happens to notice.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent / "faults"
FIELDS = frozenset({"name", "what", "file", "old", "new", "tests"})


class StaleMutantError(Exception):
    """A declared fault no longer fits the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One planted fault.

    Attributes:
        name: unique; as given to `--only`.
        what: what goes wrong, for people.
        file: path from the root of the project, with forward slashes.
        old, new: the text that is replaced, and what stands there instead.
        tests: ids of the tests that have to fail.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, text: str) -> str:
        """The file's text with the fault in it.

        Raises:
            StaleMutantError: the text to replace is not there exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise StaleMutantError(
                f"{self.name}: the old text occurs {count} times in {self.file}; expected once"
            )
        return text.replace(self.old, self.new)


def load(folder: Path = FOLDER) -> tuple[Mutant, ...]:
    """All declared faults, by file and then in the order in which they stand there.

    Raises:
        ValueError: an entry has other fields than it should.
    """
    return tuple(
        _mutant(entry, path)
        for path in sorted(folder.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    )


def _mutant(entry: Mapping[str, str | Sequence[str]], path: Path) -> Mutant:
    if set(entry) != FIELDS:
        raise ValueError(f"{path.name}: {entry.get('name')}: fields {sorted(set(entry) ^ FIELDS)}")
    return Mutant(
        **{name: str(entry[name]) for name in FIELDS - {"tests"}},
        tests=tuple(entry["tests"]),
    )
