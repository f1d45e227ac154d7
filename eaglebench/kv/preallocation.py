"""How many pages a reservation takes: the required part and what a policy adds to it.

    C computed, N new, L look-ahead slots; P = pages for `preallocate_tokens`; ps the page size
    required            ceil((C + N + L) / ps) - held
    none                nothing more (vLLM since #16941)
    lookahead-blocks    max(0, P - L // ps) more (vllm#16370 as merged): a saw-tooth in L
    covered             max(0, P - pages of this reservation past ceil((C + N) / ps)) more (as
                        proposed there): the total never falls as L grows

A request that holds enough already gets nothing, whatever the policy.
"""

from dataclasses import dataclass
from typing import NamedTuple

from eaglebench.kv.geometry import PageGeometry
from eaglebench.records.knobs import Preallocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Slots a request needs in one step.

    Attributes:
        num_computed: slots written and verified.
        num_new: slots this step writes, unverified drafts included.
        num_lookahead: slots past them, for the proposal at the end of the step.
        max_slots: context limit; nothing past it is reserved.
    """

    num_computed: int
    num_new: int
    num_lookahead: int
    max_slots: int | None = None

    @property
    def num_slots(self) -> int:
        """Slots needed in all."""
        wanted = self.num_computed + self.num_new + self.num_lookahead
        return wanted if self.max_slots is None else min(wanted, self.max_slots)


class PageNeed(NamedTuple):
    """Pages a reservation takes: those it needs and those it would like ahead of need."""

    required: int
    preallocated: int


def page_need(
    policy: Preallocation,
    demand: Demand,
    *,
    geometry: PageGeometry,
    num_held: int,
    preallocate_tokens: int,
) -> PageNeed:
    """Pages to take for a demand when `num_held` pages are held already."""
    required = geometry.pages_for(demand.num_slots) - num_held
    if required <= 0:
        return PageNeed(0, 0)
    extra = 0
    aim = geometry.pages_for(preallocate_tokens)
    if policy == "lookahead-blocks":
        extra = max(0, aim - geometry.whole_pages(demand.num_lookahead))
    elif policy == "covered":
        before = geometry.pages_for(demand.num_computed + demand.num_new)
        used = geometry.pages_for(demand.num_slots) - before
        extra = max(0, aim - used)
    if demand.max_slots is not None:
        room = geometry.pages_for(demand.max_slots) - num_held - required
        extra = max(0, min(extra, room))
    return PageNeed(required, extra)
