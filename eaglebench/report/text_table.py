"""A table of texts that every format for people can show."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """One table, decided and spelled out; the formats only place it.

    Attributes:
        id: a name for links.
        caption: what it shows.
        columns: heads.
        rows: texts, one a column; a dash where nothing was measured.
        alignment: a letter a column, `l` for words and `r` for numbers.
        remarks: sentences under it.
    """

    id: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    alignment: str
    remarks: tuple[str, ...] = ()
