"""Where a request ends: the first stop or limit met, token by token.

Tokens are looked at one after another, also inside an accepted run, so a stop that lies before a
limit wins, and a stop and a limit on the same token count as a stop.

Stop strings are looked for in the text of the last tokens, kept from step to step: what it costs
depends on the longest stop string and not on what has been written. Tokens without text of their own
(special tokens) are not kept, so that any number of them may stand inside a stop string.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eaglebench.records.generation import FinishReason

Decode = Callable[[Sequence[int]], str]

_UNSETTLED_CHARACTERS = 8
"""Characters at both ends of a tail that later tokens, or the missing ones in front, may change: an
unfinished character, and a space that a tokenizer leaves out at the beginning of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """What ends one request.

    Attributes:
        stop_token_ids: end tokens.
        stop_strings: end texts.
        max_output_tokens: most tokens to deliver.
        max_known_tokens: context limit, prompt and output together.
        decode: token ids to text; only called when there are stop strings.
    """

    stop_token_ids: frozenset[int]
    stop_strings: tuple[str, ...]
    max_output_tokens: int
    max_known_tokens: int
    decode: Decode


@dataclass(frozen=True, slots=True)
class Cut:
    """How many of the new tokens are kept, and why the request ends there (None: it goes on)."""

    num_kept: int
    reason: FinishReason | None


class StopWatch:
    """Looks at one request's tokens as they come; remembers how many, and the end of their text."""

    def __init__(self, rule: StopRule, num_prompt_tokens: int) -> None:
        self.rule = rule
        self._num_prompt_tokens = num_prompt_tokens
        self._num_output = 0
        self._tail = TextTail(rule.stop_strings, rule.decode)

    def cut(self, new_ids: Sequence[int]) -> Cut:
        """Look at `new_ids`, which follow all that were kept before, one by one."""
        rule = self.rule
        for num_kept, token_id in enumerate(new_ids, start=1):
            self._num_output += 1
            if token_id in rule.stop_token_ids or self._tail.completes_a_stop(token_id):
                return Cut(num_kept, "stop")
            if self._num_output >= rule.max_output_tokens:
                return Cut(num_kept, "length")
            if self._num_prompt_tokens + self._num_output >= rule.max_known_tokens:
                return Cut(num_kept, "context")
        return Cut(len(new_ids), None)


class TextTail:
    """The last tokens that have text, as many as a stop string can reach back."""

    def __init__(self, stop_strings: Sequence[str], decode: Decode) -> None:
        self._stop_strings = tuple(stop_strings)
        self._decode = decode
        self._num_characters = max(map(len, stop_strings), default=0) + _UNSETTLED_CHARACTERS
        self._token_ids: list[int] = []
        self._text = ""

    def completes_a_stop(self, token_id: int) -> bool:
        """Whether a stop string is complete with this token; looks at nothing but the tail."""
        if not self._stop_strings:
            return False
        longer = self._decode([*self._token_ids, token_id])
        # twice: a space at the beginning of a text may be left out, and shows behind another one
        if longer == self._text and not self._decode([token_id, token_id]):
            return False  # no text: neither here nor for the tokens that follow
        self._token_ids.append(token_id)
        self._text = longer
        if any(stop in longer for stop in self._stop_strings):
            return True
        if len(longer) > 2 * self._num_characters:
            self._shorten()
        return False

    def _shorten(self) -> None:
        """Drop leading tokens whose text no stop string can reach any more."""
        low, high = 0, len(self._token_ids) - 1
        while low < high:  # the most tokens whose rest is still long enough
            middle = (low + high + 1) // 2
            is_enough = len(self._decode(self._token_ids[middle:])) >= self._num_characters
            low, high = (middle, high) if is_enough else (low, middle - 1)
        for start in range(low, 0, -1):
            rest = self._decode(self._token_ids[start:])
            if self._text.endswith(rest):  # not in the middle of a character
                self._token_ids, self._text = self._token_ids[start:], rest
                return
