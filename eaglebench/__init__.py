"""What prefix caching and paging do to EAGLE speculative decoding.

`run`, `load`, `judge` and `compare` do what the commands do (`docs/python.md`); importing
the package costs nothing before one of them is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eaglebench.bench.api import Comparison, compare, judge, load, run
    from eaglebench.bench.stored_run import Run

__all__ = ["Comparison", "Run", "compare", "judge", "load", "run"]


def __getattr__(name: str) -> Any:
    """The names above, imported when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eaglebench.bench import api  # noqa: PLC0415  # importing the package costs nothing

    return getattr(api, name)
