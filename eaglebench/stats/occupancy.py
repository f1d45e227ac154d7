"""How full a batch was: running requests over those that may run, in the mean over steps."""

from collections.abc import Iterable

from eaglebench.records.measured import MeasuredBlock


def occupancy(blocks: Iterable[MeasuredBlock]) -> float | None:
    """Mean share of the places for requests that were taken; None where it was not recorded."""
    taken = places = 0
    for block in blocks:
        if block.times.running_rows is None or block.parallel is None:
            return None
        taken += block.times.running_rows
        places += block.times.num_steps * block.parallel
    return taken / places if places else None
