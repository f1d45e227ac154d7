"""Size limits: what does not fit on a few screens is split."""

import ast

from tests.architecture.source import CODE_FOLDERS, functions_of, parse, sources

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_CLASS_LINES = 250


def node_lines(node: ast.stmt) -> int:
    """Lines from the first to the last, decorators not counted."""
    assert node.end_lineno is not None
    return len(range(node.lineno, node.end_lineno + 1))


def test_files_are_short() -> None:
    """No file is longer than the limit."""
    found = [
        f"{source.name}: {source.num_lines}"
        for source in sources(*CODE_FOLDERS)
        if source.num_lines > MAX_FILE_LINES
    ]

    assert found == []


def test_functions_are_short() -> None:
    """No function is longer than the limit."""
    found = [
        f"{source.name}:{function.lineno} {function.name}: {node_lines(function)}"
        for source in sources(*CODE_FOLDERS)
        for function in functions_of(source.tree)
        if node_lines(function) > MAX_FUNCTION_LINES
    ]

    assert found == []


def test_classes_are_short() -> None:
    """No class is longer than the limit."""
    found = [
        f"{source.name}:{node.lineno} {node.name}: {node_lines(node)}"
        for source in sources(*CODE_FOLDERS)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and node_lines(node) > MAX_CLASS_LINES
    ]

    assert found == []


def test_lines_are_counted_from_first_to_last() -> None:
    """A function of two lines counts two, its decorator does not count."""
    source = parse("eaglebench/x.py", "@cache\ndef f():\n    return 1\n")
    (function,) = functions_of(source.tree)

    assert node_lines(function) == 2
