"""What must load without torch, seen in fresh processes."""

import json
import subprocess
import sys
import time

import pytest

from eaglebench.report.formats import FORMATS
from tests.architecture.source import sources

HEAVY = ("torch", "transformers", "pandas", "datasets", "pyarrow", "scipy")
LIGHT_PACKAGES = ("records", "store", "stats", "plan", "report", "bench", "assets", "cli")
NEEDLESS = (
    "datasets", "gguf", "IPython", "junitparser", "matplotlib", "pandas", "plotly", "pyarrow",
    "sklearn", "statsmodels", "tabulate", "torchvision",
)  # fmt: skip
"""What a run's models and commands are loaded without; tables at its end may need some of it."""
SHOW_LOADED = "print(json.dumps(sorted(sys.modules)))"
HELP_LIMIT_S = 5.0
"""Far above what it takes (a fifth of a second), because other tests may hold the processors."""

BLOCKER = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "transformers"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def run_python(*arguments: str) -> str:
    """Standard output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules_of(package: str) -> list[str]:
    """Dotted names of all modules of a package."""
    return [
        source.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for source in sources("eaglebench")
        if source.part == package
    ]


def test_the_command_line_loads_nothing_heavy() -> None:
    """Importing the command loads neither torch nor transformers nor table libraries."""
    code = "import json, sys, eaglebench.cli.main; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(run_python("-c", code))

    assert [name for name in HEAVY if name in loaded] == []


def test_a_run_starts_without_what_it_does_not_need() -> None:
    """Commands, engine and loaders of a run pull in no table, chart or data-set library."""
    code = (
        "import json, sys, eaglebench.cli.run_command, eaglebench.bench.session, "
        "eaglebench.backends.registry, eaglebench.backends.loading; "
        f"{SHOW_LOADED}"
    )
    loaded = json.loads(run_python("-c", code))

    assert [name for name in NEEDLESS if name in loaded] == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_loads_no_terminal_and_no_charts(form: str) -> None:
    """The module of a format for machines, for GitHub or for a browser pulls in neither."""
    module = FORMATS[form].partition(":")[0]
    loaded = json.loads(run_python("-c", f"import json, sys, {module}; {SHOW_LOADED}"))

    assert [other for other in ("rich", "plotly") if other in loaded] == []


def test_the_names_of_the_formats_load_none_of_them() -> None:
    """The choices of `report --format` are made without a format."""
    code = f"import json, sys, eaglebench.cli.report_command; {SHOW_LOADED}"
    loaded = json.loads(run_python("-c", code))

    assert {name for name in loaded if name.startswith("eaglebench.report.")} == {
        "eaglebench.report.formats"
    }


def test_importing_the_package_loads_nothing() -> None:
    """`import eaglebench` costs no torch, no pandas, no pydantic; using it does."""
    code = "import json, sys, eaglebench; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(run_python("-c", code))

    assert [name for name in (*HEAVY, "pydantic", "numpy", "click") if name in loaded] == []


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["help", "aliases"]])
def test_help_comes_at_once(arguments: list[str]) -> None:
    """Help is printed by a fresh process without a noticeable wait."""
    start = time.perf_counter()
    shown = run_python("-m", "eaglebench", *arguments)
    elapsed = time.perf_counter() - start

    assert shown
    assert elapsed < HELP_LIMIT_S


@pytest.mark.parametrize("package", LIGHT_PACKAGES)
def test_results_can_be_judged_without_torch(package: str) -> None:
    """Every module that plans, stores, compares or shows imports where torch can't be imported."""
    modules = modules_of(package)

    assert modules
    run_python("-c", BLOCKER, *modules)
