"""What fits into the pools: the one formula for sizing, for checking prompts, and for scheduling.

    slots of a request that is alone     prompt P | root, drafts | proposal after the verify step
                                         [ 0, P ) [ P, P+1+n   ) [ ...      num_lookahead )

A prompt fits if all that can be had in otherwise empty pools: then it can be computed, and verified
once, unless its first token ends it. Whether others run at the same time is not asked here.
"""

from dataclasses import dataclass

from eaglebench.engine.config import EngineConfig
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.window import slots_in_front
from eaglebench.spec.shape import DraftRoom

_ROOT = 1
_STRADDLING = 2
"""Pages at both ends: the window begins inside one, the settled end lies in another."""


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """The pools of one engine, and what is proposed in it."""

    config: EngineConfig
    draft: DraftRoom

    @property
    def geometry(self) -> PageGeometry:
        """Slots and pages."""
        return self.config.geometry

    @property
    def max_slots(self) -> int:
        """Most slots that one request can ever hold."""
        return self.draft.most_slots(self.config.context_length)

    def obstacle(self, num_prompt_tokens: int, max_new_tokens: int) -> str | None:
        """Why a prompt can't run even alone, with both numbers; None where it can."""
        config = self.config
        if num_prompt_tokens >= config.context_length:
            return (
                f"prompt of {num_prompt_tokens} tokens leaves no room for an answer in a context "
                f"of {config.context_length} tokens"
            )
        slots = self.slots_of_prompt(num_prompt_tokens, max_new_tokens)
        needed = f"prompt of {num_prompt_tokens} tokens needs {slots} slots with look-ahead"
        if self.geometry.pages_for(slots) > config.num_pages:
            return f"{needed}; the KV pool has {config.num_pages * config.knobs.page_size}"
        windows = self.windows_of_prompt(num_prompt_tokens, max_new_tokens)
        if windows > config.num_window_pages:
            size = config.knobs.page_size
            return (
                f"{needed}, {windows * size} of them in window layers at once; their KV pool has "
                f"{config.num_window_pages * size}"
            )
        return None

    def slots_of_prompt(self, num_prompt_tokens: int, max_new_tokens: int) -> int:
        """Slots a prompt needs until its first verify step is over."""
        if max_new_tokens <= 1:
            return num_prompt_tokens
        prefilled = self._prefilled_slots(num_prompt_tokens, max_new_tokens)
        is_last = num_prompt_tokens + _ROOT >= self.config.context_length
        if is_last:  # the first token fills the context
            return min(prefilled, self.max_slots)
        return min(max(prefilled, self._verified_slots(num_prompt_tokens)), self.max_slots)

    def windows_of_prompt(self, num_prompt_tokens: int, max_new_tokens: int) -> int:
        """Pages of window layers that a prompt holds at once until then; 0 without such layers."""
        if self.config.window is None:
            return 0
        prefilled = self._prefilled_slots(num_prompt_tokens, max_new_tokens)
        most = self.most_windows(min(prefilled, self.max_slots))
        slots = self.slots_of_prompt(num_prompt_tokens, max_new_tokens)
        while_verifying = self._windows_behind(slots - num_prompt_tokens)
        return max(most, min(self.geometry.pages_for(slots), while_verifying))

    def most_windows(self, num_slots: int) -> int:
        """Pages of window layers held at once while a prefill of so many slots is computed."""
        pages = self.geometry.pages_for(num_slots)
        chunk = self.config.knobs.chunked_prefill_size
        if chunk is None or self.config.window is None:
            return pages
        return min(pages, self._windows_behind(chunk + self.draft.most_slots_of_a_step))

    def _windows_behind(self, num_tokens: int) -> int:
        """Pages of window layers held at once while so many tokens are computed behind a window."""
        assert self.config.window is not None
        return (
            self.geometry.pages_for(slots_in_front(self.config.window) + num_tokens) + _STRADDLING
        )

    def _prefilled_slots(self, num_prompt_tokens: int, max_new_tokens: int) -> int:
        """Slots of a prompt and of the proposal behind it."""
        if max_new_tokens <= 1:
            return num_prompt_tokens
        committed = range(num_prompt_tokens, num_prompt_tokens + 1)
        return num_prompt_tokens + self.draft.num_lookahead(num_prompt_tokens, committed)

    def _verified_slots(self, num_prompt_tokens: int) -> int:
        """Slots of a prompt, its first verify step, and the proposal behind that."""
        shape = self.draft.after(num_prompt_tokens)
        end = num_prompt_tokens + _ROOT + shape.num_nodes
        least = num_prompt_tokens + _ROOT
        deepest = shape.num_levels
        return end + self.draft.num_lookahead(end, range(least, least + deepest + 1))
