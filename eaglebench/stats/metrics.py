"""What is judged: direction and kind of every metric."""

from dataclasses import dataclass
from difflib import get_close_matches

from eaglebench.errors import UsageError

ACCEPTANCE = "al"
THROUGHPUT = "throughput"
OUTPUT = "output"
DRAFTS = "drafts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    Attributes:
        name: as in `--fail-on`.
        higher_is_better: None where any change is wrong.
        is_deterministic: the same on every run of the same code on the same machine class.
        description: for people.
    """

    name: str
    higher_is_better: bool | None
    is_deterministic: bool
    description: str

    def loss(self, before: float, after: float) -> float:
        """Relative loss: positive is worse, negative is better, 0 where nothing changed."""
        change = relative_change(before, after)
        if self.higher_is_better is None:
            return abs(change)
        return -change if self.higher_is_better else change


def relative_change(before: float, after: float) -> float:
    """`after / before - 1`; infinite where something appears out of nothing."""
    if before == after:
        return 0.0
    return after / before - 1 if before else float("inf")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name=ACCEPTANCE,
            higher_is_better=True,
            is_deterministic=True,
            description="acceptance length: tokens of verify steps / verify steps",
        ),
        Metric(
            name=OUTPUT,
            higher_is_better=None,
            is_deterministic=True,
            description="questions whose output tokens changed",
        ),
        Metric(
            name=DRAFTS,
            higher_is_better=None,
            is_deterministic=True,
            description="questions in which other tokens were drafted to the same end",
        ),
        *(
            Metric(name=name, higher_is_better=is_better, is_deterministic=True, description=text)
            for name, is_better, text in (
                ("verify_steps", False, "target forwards over drafts"),
                ("target_forwards", False, "forwards of the target"),
                ("draft_forwards", False, "forwards of the head"),
                ("prefill_tokens_computed", False, "prompt tokens computed"),
                ("cached_tokens", True, "prompt tokens found in the prefix cache"),
                ("pages_allocated", False, "pages taken from the free list"),
                ("alloc_calls", False, "times the free list was asked"),
                ("evictions", False, "pages evicted to make room"),
                ("preemptions", False, "requests that lost their pages"),
            )
        ),
        Metric(
            name=THROUGHPUT,
            higher_is_better=True,
            is_deterministic=False,
            description="tokens a second against no-cache of the same run",
        ),
    )
}
COUNTERS = tuple(
    name
    for name, metric in METRICS.items()
    if metric.is_deterministic and name not in {ACCEPTANCE, OUTPUT, DRAFTS}
)


def metric(name: str) -> Metric:
    """A metric by name.

    Raises:
        UsageError: there is none; the nearest names are offered.
    """
    if name in METRICS:
        return METRICS[name]
    near = get_close_matches(name, METRICS, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(METRICS)}"
    raise UsageError(f"unknown metric {name!r}", hint=hint)
