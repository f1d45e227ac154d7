"""Every runtime dependency is used, and says in the decisions what it is for."""

import re
import tomllib

from tests.architecture.source import ROOT, imports_of, sources

DECISIONS = ROOT / "docs" / "decisions" / "0001-dependencies.md"
IMPORT_NAMES = {"py-cpuinfo2": "cpuinfo", "pyyaml": "yaml"}
"""Where the name of a distribution is not the one of its package."""
NOT_IMPORTED: dict[str, str] = {}
"""Asked for although no module names it, with the reason."""


def runtime_dependencies() -> list[str]:
    """Distributions that the package asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"[<>=!~\[ ]", each)[0] for each in project["dependencies"]]


def decided() -> list[str]:
    """Distributions with a line in the table of decisions."""
    rows = [
        line.split("|")[1]
        for line in DECISIONS.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| dependency")
    ]
    return [name.strip() for row in rows for name in row.split(",")]


def test_every_dependency_is_imported_somewhere() -> None:
    """None is asked for that no module imports, but those that others need, with the reason."""
    imported = {
        item.module.split(".")[0]
        for source in sources("eaglebench")
        for item in imports_of(source.tree)
    }

    unused = [
        name
        for name in runtime_dependencies()
        if IMPORT_NAMES.get(name, name.replace("-", "_")) not in imported
    ]

    assert [name for name in unused if name not in NOT_IMPORTED] == []


def test_every_dependency_has_its_line_in_the_decisions() -> None:
    """The table of decisions and the project file name the same distributions, each once."""
    assert sorted(decided()) == sorted(runtime_dependencies())
