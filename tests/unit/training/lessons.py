"""Builders for tests of training: conversations, and what a target says by itself."""

import numpy as np
import torch

from eaglebench.model.attention_plan import PlanRow, make_plan
from eaglebench.model.target import Target
from eaglebench.training.conversation import Conversation
from tests.engines import byte_ids

BOS, EOS, USER, ASSISTANT = range(256, 260)


def exchange(question: str, answer: str) -> Conversation:
    """A conversation of the tiny pair."""
    lead = (BOS, USER, *byte_ids(question), ASSISTANT)
    ids = (*lead, *byte_ids(answer), EOS)
    return Conversation(ids, ((len(lead), len(ids)),))


def greedy_answer(target: Target, prompt: tuple[int, ...], count: int) -> tuple[int, ...]:
    """So many greedy tokens, each by a forward over everything before it."""
    ids = list(prompt)
    for _ in range(count):
        plan = make_plan(
            [PlanRow(np.arange(1, len(ids) + 1), len(ids))], device=target.device, backend="loop"
        )
        last_row = torch.tensor([len(ids) - 1])
        output = target.forward(
            torch.tensor(ids),
            torch.arange(len(ids)),
            plan,
            target.make_pool(len(ids) + 1),
            last_row,
        )
        ids.append(int(output.logits.argmax()))
    return tuple(ids[len(prompt) :])
