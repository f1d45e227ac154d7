"""Time as an argument: whoever needs the time is handed a clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock."""

    def now_s(self) -> float:
        """Seconds since an arbitrary start."""
        ...


class MonotonicClock:
    """The machine's monotonic clock."""

    def now_s(self) -> float:
        """Seconds since an arbitrary start."""
        return time.perf_counter()
