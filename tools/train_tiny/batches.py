"""Batches of synthetic conversations, with a loss weight for each token."""

import random

import torch
from torch import Tensor

from tools.train_tiny.text import conversation
from tools.train_tiny.tokens import EOS, encode_conversation

LENGTH = 256
BATCH = 16
QUESTION_WEIGHT = 0.03
"""Questions hold words that nobody can predict."""


def make_batch(rng: random.Random, size: int = BATCH) -> tuple[Tensor, Tensor]:
    """[size, LENGTH] token ids (int64), and weights (float32): 1 in answers."""
    ids = torch.full((size, LENGTH), EOS)
    weight = torch.zeros(size, LENGTH)
    for row in range(size):
        tokens: list[int] = []
        is_answer: list[bool] = []
        while len(tokens) < LENGTH:
            more, answers = encode_conversation(conversation(rng, turns=rng.randint(1, 3)))
            tokens += more
            is_answer += answers
        ids[row] = torch.tensor(tokens[:LENGTH])
        marked = torch.tensor(is_answer[:LENGTH])
        weight[row] = torch.where(marked, 1.0, QUESTION_WEIGHT)
    return ids, weight
