"""Habits that a machine can keep: one mouth, doc-only packages, narrow handlers, told tests."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source import Source, functions_of, imports_of, parse, sources

MAY_READ_ENVIRONMENT = (
    *("cli/", "assets/cache.py", "bench/environment.py"),
    "backends/worker_process.py",  # hands it on to the process it starts
)
PYTHON_ENTRY = "eaglebench/__init__.py"
"""Names what Python code may call, and imports it when it does."""
MAY_DIVIDE = ("kv/geometry.py", "engine/stopping.py")
"""Pages and slots; and the middle of a search over texts, which is no page."""
CATCH_ALL = {"Exception", "BaseException"}
MAY_CATCH_ALL = ("cli/main.py", "foreign.py", "backends/workers/vllm_worker.py")


def _dotted(node: ast.AST) -> str:
    """`a.b.c` for names and attributes, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


def _uses(source: Source, names: set[str]) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and _dotted(node) in names:
            yield f"{source.name}:{node.lineno} uses {_dotted(node)}"


def loud_lines(source: Source) -> list[str]:
    """Printing, exiting and click outside the command line."""
    if source.part in {"cli", "__main__"}:
        return []
    names = {"print", "sys.exit", "exit", "quit", "sys.stdout", "sys.stderr", "os._exit"}
    found = list(_uses(source, names))
    found += [
        f"{source.name}:{item.line} imports click"
        for item in imports_of(source.tree)
        if item.module.split(".")[0] == "click"
    ]
    return found


def environment_reads(source: Source) -> list[str]:
    """Uses of the process's environment where it should come in as an argument."""
    if source.inner_name.startswith(MAY_READ_ENVIRONMENT):
        return []
    return list(_uses(source, {"os.environ", "os.getenv", "environ", "getenv"}))


def broad_handlers(source: Source) -> list[str]:
    """Handlers that catch everything, outside the places that report again."""
    if source.inner_name in MAY_CATCH_ALL:
        return []
    found = []
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(kind is None or _dotted(kind) in CATCH_ALL for kind in caught):
            found.append(f"{source.name}:{node.lineno}")
    return found


def divisions(source: Source) -> list[str]:
    """Whole divisions and remainders where slots and pages are counted."""
    if source.part not in {"kv", "engine"} or source.inner_name in MAY_DIVIDE:
        return []
    called = [
        f"{source.name}:{node.lineno} divides"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and _dotted(node.func) in {"divmod", "math.ceil", "ceil"}
    ]
    return called + [
        f"{source.name}:{node.lineno} divides"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.BinOp | ast.AugAssign)
        and isinstance(node.op, ast.FloorDiv | ast.Mod)
    ]


def untold_tests(source: Source) -> list[str]:
    """Tests without a docstring, or without `-> None`."""
    found = []
    for function in functions_of(source.tree):
        if not function.name.startswith("test_"):
            continue
        returns = function.returns
        if not (isinstance(returns, ast.Constant) and returns.value is None):
            found.append(f"{source.name}:{function.lineno} {function.name} lacks -> None")
        if ast.get_docstring(function) is None:
            found.append(f"{source.name}:{function.lineno} {function.name} lacks a docstring")
    return found


def test_only_the_command_line_speaks() -> None:
    """Nothing outside `cli` prints, exits or knows click."""
    assert [line for source in sources("eaglebench") for line in loud_lines(source)] == []


def test_the_environment_is_read_where_it_is_said() -> None:
    """Environment variables are read by the command line, the cache folder and the fingerprint."""
    assert [line for source in sources("eaglebench") for line in environment_reads(source)] == []


def test_errors_are_not_swallowed() -> None:
    """Only the outermost command and the process boundary catch everything."""
    assert [line for source in sources("eaglebench") for line in broad_handlers(source)] == []


def test_pages_are_divided_in_one_place() -> None:
    """Most bugs of this field are a lost or doubled one: only the geometry divides."""
    assert [line for source in sources("eaglebench") for line in divisions(source)] == []


def test_packages_are_doc_only() -> None:
    """An `__init__.py` holds a docstring and nothing else."""
    found = [
        source.name
        for source in sources("eaglebench", "tools")
        if source.name.endswith("__init__.py")
        and source.name != PYTHON_ENTRY
        and (len(source.tree.body) != 1 or ast.get_docstring(source.tree) is None)
    ]

    assert found == []


def test_modules_say_what_they_are_for() -> None:
    """Every module of the package begins with a docstring."""
    found = [s.name for s in sources("eaglebench") if ast.get_docstring(s.tree) is None]

    assert found == []


def test_tests_tell_their_behaviour() -> None:
    """Every test has a docstring and is typed."""
    assert [line for source in sources("tests") for line in untold_tests(source)] == []


@pytest.mark.parametrize("text", ["x = a // b", "x = a % b", "x //= b", "x, y = divmod(a, b)"])
def test_a_division_is_seen(text: str) -> None:
    """In the engine as in the cache."""
    assert len(divisions(parse("eaglebench/engine/x.py", text))) == 1


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("print('x')", loud_lines),
        ("import sys\nsys.exit(1)", loud_lines),
        ("from click import echo", loud_lines),
        ("import os\nx = os.environ['A']", environment_reads),
        ("import os\nx = os.getenv('A')", environment_reads),
        ("try:\n    x = 1\nexcept Exception:\n    raise", broad_handlers),
        ("try:\n    x = 1\nexcept:\n    raise", broad_handlers),
        ("try:\n    x = 1\nexcept (ValueError, BaseException):\n    raise", broad_handlers),
        ("def test_x() -> None:\n    assert True", untold_tests),
        ("def test_x():\n    '''It is.'''", untold_tests),
    ],
)
def test_the_rules_see_what_they_forbid(text: str, rule: object) -> None:
    """Each rule reports a line that breaks it."""
    assert callable(rule)

    assert len(rule(parse("eaglebench/stats/x.py", text))) == 1
