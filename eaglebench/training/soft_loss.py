"""Cross-entropy against a whole distribution, with the gradient made in the forward pass.

    loss = mean over rows of  logsumexp(x) - sum(w * x)        grad = (softmax(x) - w) / rows

Written as one autograd function because the plain form walks over [rows, vocab] a dozen times and keeps
most of it for the backward pass.
"""

from typing import Any

import torch
from torch import Tensor


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor) -> Tensor:
        probabilities = torch.softmax(logits, dim=-1)
        aligned = torch.linalg.vecdot(wanted, logits).float()
        loss: Tensor = (torch.logsumexp(logits.float(), dim=-1) - aligned).mean()
        ctx.save_for_backward(probabilities.sub_(wanted).div_(len(logits)))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0].to(gradient.dtype), None


def soft_cross_entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """Mean cross-entropy, a scalar.

    Args:
        logits: [rows, vocab].
        wanted: [rows, vocab] distributions, of the same dtype.
    """
    apply: Any = _SoftCrossEntropy.apply
    loss: Tensor = apply(logits, wanted)
    return loss
