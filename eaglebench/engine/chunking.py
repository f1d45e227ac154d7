"""How far a prefill may go in one step."""


def chunk_end(*, start: int, prefill_end: int, budget: int | None) -> int:
    """End of the chunk that starts at slot `start`; `budget` tokens are left in this step.

    A chunk may end anywhere: checkpoints floor to the page by themselves, and the token after the
    chunk is known, so its last slot is settled.
    """
    return prefill_end if budget is None else min(prefill_end, start + budget)
