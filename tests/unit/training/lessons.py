"""Builders for tests of training: conversations, and what a target says by itself."""

import numpy as np
import torch
from torch import Tensor

from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from eaglebench.training.conversation import Conversation
from tests.engines import byte_ids

BOS, EOS, USER, ASSISTANT = range(256, 260)


def exchange(question: str, answer: str) -> Conversation:
    """A conversation of the tiny pair."""
    lead = (BOS, USER, *byte_ids(question), ASSISTANT)
    ids = (*lead, *byte_ids(answer), EOS)
    return Conversation(ids, ((len(lead), len(ids)),))


def logits_behind(target: Target, ids: tuple[int, ...]) -> Tensor:
    """[vocab] what the target says behind a text, by one forward over all of it."""
    slots = np.arange(1, len(ids) + 1)
    layout = make_layout([LayoutRow(slots, len(ids))], device=target.device, backend="loop")
    pool = target.make_pool(len(ids) + 1)
    last_row = torch.tensor([len(ids) - 1])
    positions = torch.arange(len(ids))
    return target.forward(torch.tensor(ids), positions, layout, pool, last_row).logits[0]


def greedy_answer(target: Target, prompt: tuple[int, ...], count: int) -> tuple[int, ...]:
    """So many greedy tokens."""
    ids = prompt
    for _ in range(count):
        ids = (*ids, int(logits_behind(target, ids).argmax()))
    return ids[len(prompt) :]
