"""What the pools of the scripted runtime do: what fits, and what a scarce one costs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """What prompts that hold `word` meet, in all arms.

    Attributes:
        word: which prompts.
        silent_steps: leading verify steps without a draft.
        evictions, preemptions, resumed_tokens: counts of a request in a scarce pool.
    """

    word: str
    silent_steps: int = 0
    evictions: int = 0
    preemptions: int = 0
    resumed_tokens: int | None = None


NO_PRESSURE = Pressure(word="")


class ScriptedRoom:
    """A prompt needs a slot a token and one more."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots

    def obstacle(self, num_prompt_tokens: int, max_new_tokens: int) -> str | None:
        """As the backend refuses it."""
        if num_prompt_tokens < self.num_slots:
            return None
        return f"prompt of {num_prompt_tokens} tokens; the pool has {self.num_slots}"
