"""The running counts of one request; frozen into `Counters` when it ends."""

from dataclasses import asdict, dataclass

from eaglebench.records.counters import Counters
from eaglebench.records.observation import VerifyStep


@dataclass(slots=True)
class Tally:
    """Counts that grow while a request runs (meanings: `Counters`)."""

    cached_tokens: int = 0
    prefill_tokens_computed: int = 0
    prefill_sampled: int = 0
    draft_forwards: int = 0
    target_forwards: int = 0
    pages_allocated: int = 0
    pages_returned: int = 0
    alloc_calls: int = 0
    evictions: int = 0
    preemptions: int = 0
    resumed_tokens: int = 0

    def add_hit(self, num_tokens: int) -> None:
        """Count what the prefix cache gave at an admission: the first one, or a resume."""
        if self.preemptions:
            self.resumed_tokens += num_tokens
        else:
            self.cached_tokens = num_tokens

    def freeze(
        self, *, prompt_tokens: int, output_tokens: int, steps: list[VerifyStep]
    ) -> Counters:
        """The final counts; those of verify steps are sums over `steps`."""
        accepted = sum(step.accepted for step in steps)
        emitted = sum(step.emitted for step in steps)
        return Counters(
            **asdict(self),
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            verify_steps=len(steps),
            num_drafts=sum(1 for step in steps if step.drafted_ids),
            drafted=sum(len(step.drafted_ids) for step in steps),
            accepted=accepted,
            bonus=len(steps),
            overrun=accepted + len(steps) - emitted,
        )
