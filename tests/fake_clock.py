"""A clock that a test moves."""


class FakeClock:
    """A clock for tests: moves by `tick_s` at every reading."""

    def __init__(self, tick_s: float = 0.0) -> None:
        self.time_s = 0.0
        self.tick_s = tick_s

    def now_s(self) -> float:
        """Seconds so far; then moves on by `tick_s`."""
        now = self.time_s
        self.time_s += self.tick_s
        return now
