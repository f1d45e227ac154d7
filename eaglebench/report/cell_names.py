"""Names of cells, short enough for a table or a chart."""

from collections.abc import Sequence
from itertools import takewhile


def short_names(cells: Sequence[str]) -> tuple[list[str], str]:
    """The parts of the cells' names that differ, and the parts that all share.

    Of names with unequal numbers of parts only the leading ones are looked at, and each keeps its
    last one. A single name stays as it is.
    """
    parts = [cell.split("-") for cell in cells]
    if len(cells) < 2:
        return list(cells), ""
    if len({len(part) for part in parts}) > 1:
        shortest = min(len(part) for part in parts) - 1
        columns = zip(*(part[:shortest] for part in parts), strict=True)
        leading = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
        return ["-".join(part[len(leading) :]) for part in parts], "-".join(leading)
    is_shared = [len(set(column)) == 1 for column in zip(*parts, strict=True)]
    own = ["-".join(p for p, s in zip(part, is_shared, strict=True) if not s) for part in parts]
    if not all(own):
        return list(cells), ""
    return own, "-".join(p for p, s in zip(parts[0], is_shared, strict=True) if s)
