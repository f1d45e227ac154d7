"""The EAGLE head at work: rewrite draft KV of committed slots, then propose a chain.

    slots      ...  N-3      N-2   | N-1    N      N+1
    extend     ...  (f, t)  (f, t) |                        feature of the target, next known token
    propose                        | (h, d1) (h, d2) ...    hidden state of the head, proposed token

N tokens are known. Slot i pairs the token after it with feature i, so the extend ends at slot N-2
with token t_{N-1} and predicts d_1; every further level writes one slot more. K proposed tokens
need K - 1 slots past the extend: these are the look-ahead slots.

A token is the head's likeliest one, or drawn from its distribution with a coin of its position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.kv.pool import KVPool
from eaglebench.kv.tables import BlockTable
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.layout_row import table_row, upload
from eaglebench.spec.likeliest import Choices, choose_greedy, flag_unusable
from eaglebench.spec.proposal import NOTHING_PROPOSED, DraftOdds, Proposal, chain
from eaglebench.spec.sampling import Sampler, coin
from eaglebench.spec.shape import DraftShape

_FIRST_DRAFTED = 1
"""Positions from the root, which stands at `ExtendRow.end`, to d_1."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How drafts are drawn: what makes q of the head's logits, and whose coins."""

    sampler: Sampler
    coin_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendRow:
    """Committed slots of one request whose draft KV is to be written.

    Attributes:
        table: block table of the request.
        start: first slot to write; slots [start, end) get draft KV, [0, start) have it.
        end: one past the last slot; `successor_ids` holds the tokens start + 1 .. end.
        successor_ids: [end - start] int64.
        feature_rows: [end - start] int64 rows of the target's features that belong to the slots.
        shape: what to propose afterwards; without levels the row only extends.
        drawing: how drafts of a chain are drawn; None takes the likeliest.
    """

    table: BlockTable
    start: int
    end: int
    successor_ids: NDArray[np.int64]
    feature_rows: NDArray[np.int64]
    shape: DraftShape
    drawing: Drawing | None = None

    @property
    def proposes(self) -> bool:
        """Whether anything is proposed after the extend."""
        return self.shape.num_levels > 0


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """What `Drafter.run` did, row by row.

    Attributes:
        proposals: what was proposed; a gap of NaN says that the head's logits were not finite.
        num_forwards: forwards of the head each row took part in.
        written: slots whose draft KV was written.
        num_sound: leading slots of [start, end) before the first whose state is NaN or infinite.
    """

    proposals: tuple[Proposal, ...]
    num_forwards: tuple[int, ...]
    written: tuple[NDArray[np.int64], ...]
    num_sound: tuple[int, ...]


class Drafter:
    """Extends draft KV and proposes; how proposals are made is the kind's own."""

    def __init__(self, head: DraftHead, pool: KVPool, device: torch.device) -> None:
        self.head = head
        self.pool = pool
        self.device = device

    def run(self, rows: Sequence[ExtendRow], aux: Tensor) -> DraftOutcome:
        """Extend every row, then propose for those that ask for it.

        Args:
            rows: at least one row; each has `start < end`.
            aux: [num_tokens, num_aux * hidden] hidden states of the target for this step's batch.
        """
        extended = self._extend(rows, aux)
        proposals = [NOTHING_PROPOSED] * len(rows)
        proposing = [index for index, row in enumerate(rows) if row.proposes]
        if proposing:
            made = self.propose([rows[index] for index in proposing], extended.last_hidden)
            for index, proposal in zip(proposing, made, strict=True):
                proposals[index] = proposal
        return DraftOutcome(
            tuple(proposals),
            # the extend and a forward for every further level
            tuple(max(1, row.shape.num_levels) for row in rows),
            tuple(
                row.table.slots(row.start, row.end + row.shape.num_scratch_slots) for row in rows
            ),
            extended.num_sound(),
        )

    def propose(self, rows: Sequence[ExtendRow], hidden: Tensor) -> list[Proposal]:
        """What follows each row, from the states [num_rows, hidden] of their last settled slots."""
        raise NotImplementedError

    def _extend(self, rows: Sequence[ExtendRow], aux: Tensor) -> "_Extended":
        """Write draft KV of all rows."""
        lengths = [row.end - row.start for row in rows]
        layout = make_layout(
            [table_row(row.table, row.end, n) for row, n in zip(rows, lengths, strict=True)],
            device=self.device,
            backend=self.head.attention_backend,
        )
        last = np.cumsum(lengths) - 1  # the last of each row's tokens in the flattened batch
        successors, feature_rows, positions, proposing = upload(
            [
                np.concatenate([row.successor_ids for row in rows]),
                np.concatenate([row.feature_rows for row in rows]),
                np.concatenate([np.arange(row.start, row.end) for row in rows]),
                last[[row.proposes for row in rows]],
            ],
            self.device,
        )
        features = self.head.fuse(aux.index_select(0, feature_rows))
        hidden = self.head.forward(successors, features, positions, layout, self.pool)
        return _Extended(
            hidden.index_select(0, proposing), lengths, torch.isfinite(hidden).all(dim=-1)
        )


@dataclass(frozen=True, slots=True)
class _Extended:
    """Draft KV of some rows' committed slots, written.

    Attributes:
        last_hidden: [num_proposing, hidden] state of the last slot of each row that proposes.
        lengths: slots of each row.
        is_finite: [sum of lengths] bool: whether the state of each slot is.
    """

    last_hidden: Tensor
    lengths: Sequence[int]
    is_finite: Tensor

    def num_sound(self) -> tuple[int, ...]:
        """Leading slots of each row with a finite state; reads from the device."""
        flags: list[bool] = self.is_finite.tolist()
        counts, start = [], 0
        for length in self.lengths:
            mine = flags[start : start + length]
            counts.append(mine.index(False) if False in mine else length)
            start += length
        return tuple(counts)


class ChainDrafter(Drafter):
    """Proposes chains (top-k 1) for many requests at once."""

    def propose(self, rows: Sequence[ExtendRow], hidden: Tensor) -> list[Proposal]:
        """Level by level, those that go on together; no host sync before the end."""
        levels: list[_Level] = []
        active = list(range(len(rows)))
        for level in range(max(row.shape.num_levels for row in rows)):
            if level:
                keep = [k for k, i in enumerate(active) if rows[i].shape.num_levels > level]
                active = [active[k] for k in keep]
                mine = [rows[i] for i in active]
                hidden = self._forward_level(mine, level, keep, levels[-1].tokens, hidden)
            levels.append(self._choose(rows, active, level, self.head.logits(hidden)))
        return self._collect(len(rows), levels)

    def _choose(
        self, rows: Sequence[ExtendRow], active: Sequence[int], level: int, logits: Tensor
    ) -> "_Level":
        """One token for each active row, the likeliest or drawn."""
        ids, gaps = choose_greedy(logits)
        odds: dict[int, Tensor] = {}
        drawings = [rows[index].drawing for index in active]
        samplers = dict.fromkeys(each.sampler for each in drawings if each is not None)
        if samplers:
            coins = self._coins([rows[index] for index in active], level)
        for sampler in samplers:
            mine = [k for k, each in enumerate(drawings) if each and each.sampler == sampler]
            (places,) = upload([np.array(mine, dtype=np.int64)], self.device)
            probabilities = sampler.probabilities(logits.index_select(0, places))
            drawn = sampler.draw(probabilities, coins.index_select(0, places))
            ids, gaps = ids.index_copy(0, places, drawn.ids), gaps.index_copy(0, places, drawn.gaps)
            odds |= {active[k]: probabilities[row : row + 1] for row, k in enumerate(mine)}
        chosen = flag_unusable(Choices(ids, gaps), logits) if odds else Choices(ids, gaps)
        return _Level(active, self.head.target_ids(chosen.ids), chosen.gaps, odds)

    def _coins(self, rows: Sequence[ExtendRow], level: int) -> Tensor:
        """[num_rows] float64, one for each row's token of this level; 0 where none is drawn."""
        flips = [
            coin(row.drawing.coin_key, row.end + _FIRST_DRAFTED + level, "draft")
            if row.drawing
            else 0.0
            for row in rows
        ]
        return torch.tensor(flips, dtype=torch.float64, device=self.device)

    def _forward_level(
        self,
        rows: Sequence[ExtendRow],
        level: int,
        keep: Sequence[int],
        tokens: Tensor,
        hidden: Tensor,
    ) -> Tensor:
        """Write slot `end + level - 1` of each row from the previous level's token and state.

        `keep` says where `rows` stand among the previous level's.
        """
        slots = np.array([row.end + level - 1 for row in rows], dtype=np.int64)
        layout = make_layout(
            [
                table_row(row.table, slot + 1, 1)
                for row, slot in zip(rows, slots.tolist(), strict=True)
            ],
            device=self.device,
            backend=self.head.attention_backend,
        )
        positions, kept = upload([slots, np.array(keep, dtype=np.int64)], self.device)
        return self.head.forward(
            tokens.index_select(0, kept), hidden.index_select(0, kept), positions, layout, self.pool
        )

    def _collect(self, num_rows: int, levels: Sequence["_Level"]) -> list[Proposal]:
        """Turn levels into one proposal a row."""
        token_ids: list[list[int]] = [[] for _ in range(num_rows)]
        gaps: list[list[float]] = [[] for _ in range(num_rows)]
        odds: list[list[Tensor]] = [[] for _ in range(num_rows)]
        # one wait for all levels; ids are whole numbers in float64, too
        numbers = torch.cat([torch.stack([each.tokens.double(), each.gaps]) for each in levels], 1)
        said = zip(*numbers.tolist(), strict=True)
        for level in levels:
            for index, (token, gap) in zip(level.active, said, strict=False):  # `said` goes on
                token_ids[index].append(int(token))
                gaps[index].append(gap)
            for index, probabilities in level.odds.items():
                odds[index].append(probabilities)
        draft_ids = torch.arange(self.head.draft_vocab_size, device=self.device)
        target_ids = self.head.target_ids(draft_ids)
        return [
            chain(t, g, DraftOdds(torch.cat(each), target_ids) if each else None)
            for t, g, each in zip(token_ids, gaps, odds, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Level:
    """One level of some chains.

    Attributes:
        active: rows that have this level.
        tokens: [num_active] int64 target ids.
        gaps: [num_active] float64.
        odds: [1, draft_vocab] of the rows whose token was drawn.
    """

    active: Sequence[int]
    tokens: Tensor
    gaps: Tensor
    odds: dict[int, Tensor]
