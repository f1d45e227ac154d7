"""The target as a teacher: what it knows of a conversation, lessons made of that, and a shelf of both.

ids        t_0  t_1  t_2  ...                   one conversation
aux        a_0  a_1  a_2  ...                   states that feed the head
row j      what the target says behind t_j      decides token j + 1

On the shelf lies a file a conversation, named by a digest of its tokens; what has been put there stays
valid as long as target and auxiliary layers are the same, which the folder's recipe vouches for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from eaglebench.errors import StorageError
from eaglebench.kv.pool import DUMMY_SLOTS
from eaglebench.model.attention import LoopAttention
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from eaglebench.training.conversation import Conversation

_NOT_ASKED = -1


@dataclass(frozen=True, slots=True)
class Study:
    """What the target computed of one conversation.

    Attributes:
        aux: [length, num_aux * hidden].
        decisions: [num_decisions] int64 positions behind which a token of an answer stands.
        hidden: [num_decisions, hidden] normed states there, of which lm_head makes logits.
        argmax: [num_decisions] int64 the target's own choice there.
    """

    aux: Tensor
    decisions: Tensor
    hidden: Tensor
    argmax: Tensor


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
    """Studies conversations and makes lessons of them; the target never learns."""

    def __init__(self, target: Target, aux_layer_ids: Sequence[int], draft_ids: Tensor) -> None:
        self.target = target
        self.aux_layer_ids = tuple(aux_layer_ids)
        self._draft_ids = draft_ids.to(target.device)

    @torch.no_grad()
    def study(self, conversations: Sequence[Conversation]) -> list[Study]:
        """One forward of the target over all of them, flattened."""
        device = self.target.device
        lengths = [len(each.ids) for each in conversations]
        places = [torch.tensor(_decisions(each), device=device) for each in conversations]
        starts = np.cumsum([0, *lengths[:-1]]).tolist()
        rows = torch.cat([place + start for place, start in zip(places, starts, strict=True)])
        layout_rows = [
            LayoutRow(np.arange(start, start + length) + DUMMY_SLOTS, length)
            for start, length in zip(starts, lengths, strict=True)
        ]
        output = self.target.forward(
            torch.tensor([token for each in conversations for token in each.ids], device=device),
            torch.cat([torch.arange(length, device=device) for length in lengths]),
            make_layout(layout_rows, device=device, backend="loop"),
            self.target.make_pool(DUMMY_SLOTS + sum(lengths)),
            rows,
            (*self.aux_layer_ids, self.target.normed_state_id),
            LoopAttention(),
        )
        assert output.aux is not None
        states = output.aux.clone()  # a tensor that autograd may keep
        width = self.target.hidden_size
        aux = torch.split(states[:, :-width], lengths)
        counts = [len(place) for place in places]
        hidden = torch.split(states[:, -width:].index_select(0, rows), counts)
        argmax = torch.split(output.logits.argmax(-1), counts)
        return [Study(*parts) for parts in zip(aux, places, hidden, argmax, strict=True)]

    @torch.no_grad()
    def lesson(self, conversations: Sequence[Conversation], studies: Sequence[Study]) -> Lesson:
        """A padded batch of what was studied."""
        device = self.target.device
        ids = [torch.tensor(each.ids, device=device) for each in conversations]
        hidden = torch.cat([each.hidden for each in studies]).to(device)
        logits = self.target.lm_head_logits(hidden, self._draft_ids)
        padded_ids = _padded(ids, 0)
        return Lesson(
            ids=padded_ids,
            embedded=F.embedding(padded_ids, self.target.embedding.weight),
            aux=_padded([each.aux.to(device) for each in studies], 0.0),
            wanted=torch.softmax(logits, dim=-1),
            argmax=torch.cat([each.argmax for each in studies]).to(device),
            decision=_numbered([each.decisions for each in studies], padded_ids),
        )


def _decisions(conversation: Conversation) -> list[int]:
    """Positions behind which a token of an answer stands; the first token is nobody's decision."""
    return [
        position - 1
        for start, end in conversation.answers
        for position in range(max(start, 1), end)
    ]


def _numbered(decisions: Sequence[Tensor], like: Tensor) -> Tensor:
    """[batch, length]: which decision of the batch a position is, -1 where it is none."""
    numbered = torch.full_like(like, _NOT_ASKED)
    first = 0
    for row, positions in enumerate(decisions):
        count = len(positions)
        numbered[row, positions] = torch.arange(first, first + count, device=like.device)
        first += count
    return numbered


def _padded(parts: Sequence[Tensor], fill: float) -> Tensor:
    """[batch, longest, ...] from [length, ...] each."""
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=fill)


_FIELDS = tuple(field.name for field in fields(Study))


class Shelf:
    """Gives lessons; studies what it does not have."""

    def __init__(self, teacher: Teacher, folder: Path | None) -> None:
        self._teacher = teacher
        self._folder = folder
        if folder is not None:
            folder.mkdir(exist_ok=True)

    def lesson(self, conversations: Sequence[Conversation]) -> Lesson:
        """A batch; studies that are missing are computed together and kept."""
        found = {each.ids: study for each in conversations if (study := self._read(each))}
        missing = [each for each in conversations if each.ids not in found]
        if missing:
            for each, new in zip(missing, self._teacher.study(missing), strict=True):
                self._keep(each, new)
                found[each.ids] = new
        return self._teacher.lesson(conversations, [found[each.ids] for each in conversations])

    def _read(self, conversation: Conversation) -> Study | None:
        path = self._path(conversation)
        if path is None or not path.exists():
            return None
        try:
            return Study(**load_file(path))
        except (SafetensorError, TypeError):  # cut off when the disk was full
            return None

    def _keep(self, conversation: Conversation, study: Study) -> None:
        path = self._path(conversation)
        if path is None:
            return
        tensors = {name: getattr(study, name).contiguous().cpu() for name in _FIELDS}
        fresh = path.with_suffix(".new")
        try:
            save_file(tensors, fresh)
            fresh.replace(path)
        except OSError as error:
            raise StorageError(
                f"{path} can't be written: {error.strerror}",
                hint="--no-keep-studies computes them anew each time instead",
            ) from error

    def _path(self, conversation: Conversation) -> Path | None:
        name = f"{conversation.digest.hex()[:24]}.safetensors"
        return None if self._folder is None else self._folder / name
