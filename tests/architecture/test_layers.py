"""Who may import whom: the arrows of ARCHITECTURE.md, kept by reading the source."""

import pytest

from tests.architecture.source import Source, imports_of, parse, sources

VOCABULARY = {"records", "errors", "files", "foreign", "clock", "progress"}
MAY_IMPORT: dict[str, set[str]] = {  # besides the vocabulary, which everyone may import
    "kv": set(),
    "model": {"kv"},
    "spec": {"model", "kv"},
    "engine": {"spec", "model", "kv"},
    "training": {"spec", "model", "kv"},
    "assets": set(),
    "backends": {"engine", "model", "assets"},
    "store": set(),
    "plan": set(),
    "stats": set(),
    "bench": {"plan", "store", "stats", "gate", "report", "backends", "assets"},
    "gate": {"stats"},
    "report": {"stats"},
    "cli": {"bench", "plan", "report", "assets", "training"},
    "__main__": {"cli"},
    "__init__": {"bench"},  # what Python code may call
}
TORCH_ALLOWED = (
    "kv/pool.py",
    "kv/tables.py",
    "model/",
    "spec/",
    "engine/",
    "training/",
    "backends/embedded.py",
    "backends/loading.py",
    "backends/outside.py",
    "backends/vllm.py",
    "backends/profiling.py",
)
"""The torch line: files below it, and those backends that are loaded by name."""

MAKES_HEADS = ("cli/heads_command.py", "cli/train_head_command.py")
HEAVY = {"torch", "transformers"}
MEASURED = ("kv", "model", "spec", "engine")
DRAWS = ("report/terminal.py", "cli/")
"""Where a terminal is drawn in."""


def forbidden_imports(source: Source) -> list[str]:
    """Imports of our own packages that the arrows don't allow."""
    allowed = VOCABULARY | MAY_IMPORT.get(source.part, set()) | {source.part}
    if source.part in VOCABULARY:
        allowed = VOCABULARY
    found = []
    for item in imports_of(source.tree):
        root, _, rest = item.module.partition(".")
        if root != "eaglebench":
            continue
        part = rest.split(".")[0] if rest else (item.name or "")
        if part and part not in allowed:
            found.append(f"{source.name}:{item.line} imports {part}")
    return found


def training_imports(source: Source) -> list[str]:
    """Imports of the making of heads, outside the two commands that are for it."""
    if source.part == "training" or source.inner_name in MAKES_HEADS:
        return []
    return [
        f"{source.name}:{item.line} imports {item.module}"
        for item in imports_of(source.tree)
        if f"{item.module}.{item.name}.".startswith("eaglebench.training.")
    ]


def heavy_imports(source: Source) -> list[str]:
    """Imports of torch or transformers above the torch line."""
    if source.inner_name.startswith(TORCH_ALLOWED):
        return []
    return [
        f"{source.name}:{item.line} imports {item.module}"
        for item in imports_of(source.tree)
        if item.module.split(".")[0] in HEAVY
    ]


def drawing_imports(source: Source) -> list[str]:
    """Imports of rich where no terminal is drawn in."""
    if source.inner_name.startswith(DRAWS):
        return []
    return [
        f"{source.name}:{item.line} imports {item.module}"
        for item in imports_of(source.tree)
        if item.module.split(".")[0] == "rich"
    ]


def private_imports(source: Source) -> list[str]:
    """Names of our own that begin with an underscore, taken from another module."""
    return [
        f"{source.name}:{item.line} takes {item.name} from {item.module}"
        for item in imports_of(source.tree)
        if item.module.split(".")[0] in {"eaglebench", "tests", "tools"}
        and (item.name or "").startswith("_")
    ]


def test_every_package_has_its_arrows() -> None:
    """Each package and module of the project is named in the table or in the vocabulary."""
    parts = {source.part for source in sources("eaglebench")} - {"__init__"}

    assert set() == parts - set(MAY_IMPORT) - VOCABULARY


def test_imports_follow_the_arrows() -> None:
    """No package imports another one against the direction of the layers."""
    assert [line for source in sources("eaglebench") for line in forbidden_imports(source)] == []


def test_vocabulary_is_standard_library_only() -> None:
    """Contracts, errors, files, foreign and clock load in milliseconds: they import nothing from outside."""
    light = {
        "collections",
        "contextlib",
        "dataclasses",
        "enum",
        "json",
        "pathlib",
        "shlex",
        "tempfile",
        "time",
        "typing",
        "eaglebench",
    }
    found = [
        f"{source.name}:{item.line} imports {item.module}"
        for source in sources("eaglebench")
        if source.part in VOCABULARY
        for item in imports_of(source.tree)
        if item.module.split(".")[0] not in light
    ]

    assert found == []


def test_heads_are_made_by_their_own_commands_alone() -> None:
    """Nothing that measures, compares or shows knows how heads are trained or converted."""
    assert [line for source in sources("eaglebench") for line in training_imports(source)] == []


def test_torch_stays_below_its_line() -> None:
    """Only the measured part and the backends that are loaded by name know torch."""
    assert [line for source in sources("eaglebench") for line in heavy_imports(source)] == []


def test_only_the_terminal_format_draws() -> None:
    """Tables are values; `report/terminal.py` and the command line alone know rich."""
    assert [line for source in sources("eaglebench") for line in drawing_imports(source)] == []


def test_the_measured_part_reads_no_clock_of_its_own() -> None:
    """Time reaches the engine as a `Clock`, so that tests and replays decide what time it is."""
    found = [
        f"{source.name}:{item.line}"
        for source in sources("eaglebench")
        if source.part in MEASURED
        for item in imports_of(source.tree)
        if item.module.split(".")[0] in {"time", "datetime"}
    ]

    assert found == []


def test_private_names_stay_private() -> None:
    """No module takes a name with a leading underscore from another one."""
    everywhere = sources("eaglebench", "tests", "tools", "benchmarks")

    assert [line for source in everywhere for line in private_imports(source)] == []


def test_imports_are_absolute() -> None:
    """A reader sees from each import line which package a name comes from."""
    found = [
        f"{source.name}:{item.line}"
        for source in sources("eaglebench")
        for item in imports_of(source.tree)
        if item.module.startswith(".")
    ]

    assert found == []


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("eaglebench/kv/x.py", "from eaglebench.engine.step import run", forbidden_imports),
        ("eaglebench/stats/x.py", "def f():\n    import eaglebench.store.lines", forbidden_imports),
        ("eaglebench/report/x.py", "from eaglebench import bench", forbidden_imports),
        ("eaglebench/cli/x.py", "from eaglebench.training import card", training_imports),
        ("eaglebench/cli/x.py", "from eaglebench import training", training_imports),
        ("eaglebench/store/x.py", "def f():\n    from torch import nn", heavy_imports),
        ("eaglebench/kv/keys.py", "import torch.nn", heavy_imports),
        ("eaglebench/report/x.py", "def f():\n    from rich.table import Table", drawing_imports),
        ("eaglebench/kv/x.py", "from eaglebench.kv.pages import _runs", private_imports),
    ],
)
def test_the_rules_see_what_they_forbid(name: str, text: str, rule: object) -> None:
    """Each rule reports an import that breaks it, also inside a function."""
    assert callable(rule)

    assert len(rule(parse(name, text))) == 1
