"""The running counts of one request; frozen into `Counters` when it ends."""

from dataclasses import dataclass

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
            prompt_tokens=prompt_tokens,
            cached_tokens=self.cached_tokens,
            prefill_tokens_computed=self.prefill_tokens_computed,
            output_tokens=output_tokens,
            prefill_sampled=self.prefill_sampled,
            verify_steps=len(steps),
            num_drafts=sum(1 for step in steps if step.drafted_ids),
            drafted=sum(len(step.drafted_ids) for step in steps),
            accepted=accepted,
            bonus=len(steps),
            overrun=accepted + len(steps) - emitted,
            draft_forwards=self.draft_forwards,
            target_forwards=self.target_forwards,
            pages_allocated=self.pages_allocated,
            pages_returned=self.pages_returned,
            alloc_calls=self.alloc_calls,
            evictions=self.evictions,
            preemptions=self.preemptions,
            resumed_tokens=self.resumed_tokens,
        )
