"""Where the time of engine steps went, by kind of step."""

from eaglebench.records.observation import StepTimes


class StepClock:
    """Sums step durations until they are taken."""

    def __init__(self) -> None:
        self._seconds = {"prefill": 0.0, "mixed": 0.0, "decode": 0.0}
        self._steps = dict.fromkeys(self._seconds, 0)
        self._running_rows = 0

    def add(self, seconds: float, *, has_prefill: bool, has_verify: bool, num_running: int) -> None:
        """Book one step; a step without rows is not booked."""
        if not has_prefill and not has_verify:
            return
        kind = "mixed" if has_prefill and has_verify else "prefill" if has_prefill else "decode"
        self._seconds[kind] += seconds
        self._steps[kind] += 1
        self._running_rows += num_running

    def take(self) -> StepTimes:
        """Times since the last call."""
        times = StepTimes(
            prefill_s=self._seconds["prefill"],
            mixed_s=self._seconds["mixed"],
            decode_s=self._seconds["decode"],
            prefill_steps=self._steps["prefill"],
            mixed_steps=self._steps["mixed"],
            decode_steps=self._steps["decode"],
            running_rows=self._running_rows,
        )
        self._running_rows = 0
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        self._steps = dict.fromkeys(self._steps, 0)
        return times
