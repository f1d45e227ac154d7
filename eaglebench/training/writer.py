"""Conversations that the target has with itself.

A user turn gets an opening (`openings.py`) and is written on at temperature 1 until the target ends it;
the answer is greedy, as it will be when the head is used. Many conversations are decoded side by side;
one that has ended makes room for the next, so every step is a full batch.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import torch
from torch import Tensor

from eaglebench.model.target import Target
from eaglebench.spec.likeliest import choose_greedy
from eaglebench.spec.sampling import Sampler, coin
from eaglebench.training.conversation import ChatFrame, Conversation, Span
from eaglebench.training.grid import DecodeGrid
from eaglebench.training.recipe import TrainingRecipe

_USER_TEMPERATURE = 1.0


@dataclass(frozen=True, slots=True)
class Openings:
    """Token ids of how user turns may begin."""

    first: tuple[tuple[int, ...], ...]
    later: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Draft:
    """A conversation that is being written.

    `ids[:num_fed]` are in the KV; `forced` are tokens of the frame that come next whatever the
    target would say; `turn_start` is where the turn's own text began.
    """

    number: int
    rng: Random
    turns_left: int
    ids: list[int]
    num_fed: int
    forced: deque[int]
    turn_start: int
    is_answering: bool = False
    answers: list[Span] = field(default_factory=list)

    @property
    def is_undecided(self) -> bool:
        """Whether the target says what comes behind the token that is fed next."""
        return not self.forced and self.num_fed + 1 == len(self.ids)


class ConversationWriter:
    """Writes conversations number by number; the same number is the same conversation.

    Numbers start from a seed of their own, so that a writer that is stopped goes on with the next.
    """

    def __init__(
        self, target: Target, frame: ChatFrame, openings: Openings, recipe: TrainingRecipe
    ) -> None:
        self._target, self._frame = target, frame
        self._openings, self._recipe = openings, recipe
        self._sampler = Sampler(_USER_TEMPERATURE)

    @property
    def longest(self) -> int:
        """Most tokens of a conversation."""
        frame, limits = self._frame, self._recipe
        most_opening = max(map(len, (*self._openings.first, *self._openings.later)))
        turn = len(frame.to_answer) + len(frame.to_user) + limits.answer_tokens
        return len(frame.lead) + 2 * (turn + max(limits.user_tokens, most_opening))

    def write(self, numbers: Iterator[int], batch: int) -> Iterator[Conversation]:
        """Conversations as they end, `batch` side by side; numbers are drawn as rows get free."""
        grid = DecodeGrid(self._target, batch, self.longest, list(self._frame.lead))
        rows: list[_Draft | None] = [None] * batch
        while True:
            for row, draft in enumerate(rows):
                if draft is None and (number := next(numbers, None)) is not None:
                    rows[row] = self._begin(number)
                    grid.start(row)
            if not any(rows):
                return
            self._advance(grid, rows)
            for row, draft in enumerate(rows):
                if draft is not None and draft.turns_left == 0:
                    yield Conversation(tuple(draft.ids), tuple(draft.answers), draft.number)
                    rows[row] = None

    def _begin(self, number: int) -> _Draft:
        rng = Random(f"{self._recipe.seed}/{number}")  # noqa: S311  # no secret depends on it
        turns = 2 if rng.random() < self._recipe.two_turn_share else 1
        lead = list(self._frame.lead)
        opening = rng.choice(self._openings.first)
        first, *rest = opening
        return _Draft(number, rng, turns, [*lead, first], len(lead), deque(rest), len(lead))

    def _advance(self, grid: DecodeGrid, rows: list[_Draft | None]) -> None:
        """Feed one token to every row and let the target say what comes next."""
        device = self._target.device
        fed = [(d.ids[d.num_fed], d.num_fed) if d else (0, 0) for d in rows]
        undecided = [row for row, draft in enumerate(rows) if draft and draft.is_undecided]
        ids, positions = torch.tensor(fed, device=device).unbind(1)
        logits = grid.feed(ids, positions, torch.tensor(undecided, device=device, dtype=torch.long))
        chosen = dict(zip(undecided, self._choose(rows, undecided, logits), strict=True))
        for row, draft in enumerate(rows):
            if draft is None:
                continue
            draft.num_fed += 1
            if row in chosen:
                self._take(draft, chosen[row])
            elif draft.forced:
                draft.ids.append(draft.forced.popleft())

    def _choose(self, rows: list[_Draft | None], undecided: list[int], logits: Tensor) -> list[int]:
        """Greedy in answers, drawn in user turns."""
        drafts = [rows[row] for row in undecided]
        choices = choose_greedy(logits).ids
        users = [i for i, draft in enumerate(drafts) if draft and not draft.is_answering]
        if users:
            index = torch.tensor(users, device=logits.device)
            coins = [self._coin(drafts[i]) for i in users]
            drawn = self._sampler.choose(
                logits.index_select(0, index), torch.tensor(coins, device=logits.device).double()
            )
            choices = choices.index_copy(0, index, drawn.ids)
        picked: list[int] = choices.tolist()
        return picked

    def _coin(self, draft: _Draft | None) -> float:
        assert draft is not None
        return coin(f"{self._recipe.seed}/{draft.number}", len(draft.ids))

    def _take(self, draft: _Draft, token_id: int) -> None:
        """Add the target's token, and close the turn where it ended or grew too long."""
        frame, limits = self._frame, self._recipe
        closing = frame.to_user if draft.is_answering else frame.to_answer
        limit = limits.answer_tokens if draft.is_answering else limits.user_tokens
        has_ended = token_id == closing[0] or token_id in self._target.stop_token_ids
        if not has_ended:
            draft.ids.append(token_id)
        if has_ended or len(draft.ids) - draft.turn_start >= limit:
            self._close(draft, has_ended=has_ended)

    def _close(self, draft: _Draft, *, has_ended: bool) -> None:
        """Go from a user turn to its answer, from an answer to the next turn, or to the end."""
        frame = self._frame
        if not draft.is_answering:
            draft.is_answering = True
            first, *rest = frame.to_answer
            draft.ids.append(first)
            draft.forced = deque(rest)
            draft.turn_start = len(draft.ids) + len(rest)
            return
        first, *rest = frame.to_user
        end = len(draft.ids)
        if has_ended:  # the end of an answer is something to propose as well
            draft.ids.append(first)
            end = len(draft.ids)
        elif draft.turns_left > 1:
            draft.ids.append(first)
        draft.answers.append((draft.turn_start, end))
        draft.turns_left -= 1
        if draft.turns_left:
            draft.is_answering = False
            draft.turn_start = len(draft.ids) + len(rest)
            draft.forced = deque([*rest, *draft.rng.choice(self._openings.later)])
