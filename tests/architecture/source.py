"""The project's own source as syntax trees, for the tests that guard its shape."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "eaglebench"
CODE_FOLDERS = ("eaglebench", "tests", "tools", "benchmarks")


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file.

    Attributes:
        name: path from the root of the project, with forward slashes.
        num_lines: lines of the file.
        tree: its syntax tree.
    """

    name: str
    num_lines: int
    tree: ast.Module

    @property
    def part(self) -> str:
        """Package below `eaglebench` (`kv`, `cli`), or the module where there is none (`errors`)."""
        return self.name.split("/")[1].removesuffix(".py")

    @property
    def inner_name(self) -> str:
        """Path from the root of the package."""
        return self.name.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `from module import name`, or `import module` with name None."""

    module: str
    name: str | None
    line: int


def parse(name: str, text: str) -> Source:
    """Source from text, as if it were the file `name`."""
    return Source(name, len(text.splitlines()), ast.parse(text))


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """All Python files under these folders of the project."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(
        parse(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths
    )


def imports_of(tree: ast.AST) -> Iterator[Import]:
    """All imports below a node, those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, None, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import("." * node.level + (node.module or ""), alias.name, node.lineno)


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions and methods below a node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
