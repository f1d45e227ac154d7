"""Where so many choices are close that near-ties can't be told from small faults."""

from eaglebench.stats.tau import CloseShares

NEAR_TIE_SHARE = 1 / 20
"""Near-ties are rare; more of them than this are looked at by a person."""


def are_too_many(num_ties: int, num_compared: int) -> bool:
    """Whether more than one turn, and more than the usual share, part at near-ties."""
    return num_ties > max(1, NEAR_TIE_SHARE * num_compared)


def too_close_to_tell(close: CloseShares) -> str | None:
    """What to say of near-ties at this precision; None where close choices are rare."""
    if not close.are_many:
        return None
    sides = (("target", close.target), ("head", close.draft))
    told = " and ".join(f"{share:.1%} of the {who}'s" for who, share in sides if share is not None)
    return (
        f"not decidable at this precision, {told} choices lie within the noise of matrix shapes: "
        "--dtype float32 would tell"
    )
