"""The target as a teacher: features of every token, its distribution where an answer is decided.

ids        t_0  t_1  t_2  ...                   one conversation
aux        a_0  a_1  a_2  ...                   states that feed the head
row j      what the target says behind t_j      decides token j + 1
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.model.attention import LoopAttention
from eaglebench.model.attention_plan import PlanRow, make_plan
from eaglebench.model.target import Target
from eaglebench.training.conversation import Conversation

_DUMMY_SLOTS = 1


@dataclass(frozen=True, slots=True)
class Lesson:
    """A batch of conversations, padded at their ends.

    Attributes:
        ids: [batch, length] int64.
        embedded: [batch, length, hidden] the target's embeddings of them.
        aux: [batch, length, num_aux * hidden].
        wanted: [num_decisions, draft_vocab] the target's distribution over what can be proposed.
        argmax: [num_decisions] int64 the target's own choice, an id of its whole vocabulary.
        decision: [batch, length] int64, row of `wanted` for a position that decides a token of an
            answer, -1 elsewhere.
    """

    ids: Tensor
    embedded: Tensor
    aux: Tensor
    wanted: Tensor
    argmax: Tensor
    decision: Tensor


class Teacher:
    """Computes lessons; the target never learns."""

    def __init__(self, target: Target, aux_layer_ids: Sequence[int], draft_ids: Tensor) -> None:
        self.target = target
        self.aux_layer_ids = tuple(aux_layer_ids)
        self._draft_ids = draft_ids.to(target.device)

    @torch.no_grad()
    def lesson(self, conversations: Sequence[Conversation]) -> Lesson:
        """One forward over all of them, flattened, and what it says padded again."""
        device = self.target.device
        lengths = [len(each.ids) for each in conversations]
        flat = torch.tensor([token for each in conversations for token in each.ids], device=device)
        positions = torch.cat([torch.arange(length, device=device) for length in lengths])
        decisions = torch.tensor(_decisions(conversations), device=device)
        output = self.target.forward(
            flat,
            positions,
            make_plan(_rows(lengths), device=device, backend="loop"),
            self.target.make_pool(_DUMMY_SLOTS + len(flat)),
            decisions,
            self.aux_layer_ids,
            LoopAttention(),
        )
        assert output.aux is not None
        numbered = torch.full((len(flat),), -1, device=device)
        numbered[decisions] = torch.arange(len(decisions), device=device)
        logits = output.logits
        return Lesson(
            ids=_padded(flat, lengths, 0),
            embedded=_padded(F.embedding(flat, self.target.embedding.weight), lengths, 0.0),
            aux=_padded(output.aux.clone(), lengths, 0.0),
            wanted=torch.softmax(logits.index_select(1, self._draft_ids), dim=-1),
            argmax=logits.argmax(-1),
            decision=_padded(numbered, lengths, -1),
        )


def _decisions(conversations: Sequence[Conversation]) -> list[int]:
    """Positions, in the flattened batch, behind which a token of an answer stands."""
    found, offset = [], 0
    for each in conversations:
        for start, end in each.answers:
            behind = range(max(start, 1), end)
            found += [offset + position - 1 for position in behind]
        offset += len(each.ids)
    return found


def _rows(lengths: Sequence[int]) -> list[PlanRow]:
    starts = np.cumsum([_DUMMY_SLOTS, *lengths[:-1]])
    return [
        PlanRow(np.arange(start, start + length), length)
        for start, length in zip(starts, lengths, strict=True)
    ]


def _padded(flat: Tensor, lengths: Sequence[int], fill: float) -> Tensor:
    """[batch, longest, ...] from [sum of lengths, ...]."""
    return torch.nn.utils.rnn.pad_sequence(
        list(torch.split(flat, list(lengths))), batch_first=True, padding_value=fill
    )
