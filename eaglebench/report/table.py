"""A table as values, made once: the formats place it, and decide and spell nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from eaglebench.report.phrases import Value, cell_text


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: its head.
        value: of an item, or the dotted name under which the item has it; None is what was not
            measured.
        form: how a value is spelled.
        is_right: set flush right, as numbers always are.
        short: the head where there is little room, with its line ends.
        filter: the select of the HTML page that looks at it.
        is_wide: left out where there is little room.
    """

    heading: str
    value: str | Callable[[Any], Value]
    form: str = "text"
    is_right: bool = False
    short: str | None = None
    filter: str | None = None
    is_wide: bool = False

    @property
    def letter(self) -> str:
        """`l` for words, `r` for numbers."""
        return "r" if self.is_right or self.form not in {"text", "verdict"} else "l"

    def of(self, item: Any) -> Value:
        """Its value of an item."""
        return read(self.value)(item) if isinstance(self.value, str) else self.value(item)


def read(path: str, then: Callable[[Any], Value] = lambda value: value) -> Callable[[Any], Value]:
    """What reads a dotted name; None where a part of it is None."""

    def value(item: Any) -> Value:
        for name in path.split("."):
            item = getattr(item, name)
            if item is None:
                return None
        return then(item)

    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Values, and what is said about them.

    Attributes:
        name: for links.
        title: what it shows.
        columns: heads and forms.
        rows: a value for each column.
        remarks: sentences under it.
        heading: the column that names its row.
    """

    name: str = ""
    title: str = ""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    remarks: tuple[str, ...] = ()
    heading: int = 0

    @property
    def texts(self) -> list[list[str]]:
        """The rows as they are shown."""
        return self.first(None)

    def narrow(self) -> "Table":
        """The table without the columns that need much room."""
        kept = [place for place, column in enumerate(self.columns) if not column.is_wide]
        columns = tuple(self.columns[place] for place in kept)
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, columns=columns, rows=rows)

    def first(self, most: int | None) -> list[list[str]]:
        """As many of the rows, as they are shown; what is cut costs nothing."""
        forms, rows = [column.form for column in self.columns], self.rows[:most]
        return [[cell_text(*cell) for cell in zip(row, forms, strict=True)] for row in rows]

    @property
    def filters(self) -> dict[str, int]:
        """Columns that the page's selects look at, by select."""
        return {c.filter: place for place, c in enumerate(self.columns) if c.filter is not None}


def make_table(columns: Iterable[Column], items: Iterable[Any], **about: Any) -> Table:
    """One row an item; `about` is the rest of the table."""
    columns = tuple(columns)
    rows = tuple(tuple(column.of(item) for column in columns) for item in items)
    return Table(columns=columns, rows=rows, **about)
