"""Linear layers for a handful of rows.

A verify step multiplies each weight with two to a few dozen rows. BLAS libraries choose a kernel
by the shape of the left operand, and with so few rows in front some of them read the weight
several times slower than memory allows; with the weight in front they don't. `benchmarks/linear.py`
measures both.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MIN_ROWS, MAX_ROWS = 2, 16
"""Row counts for which the weight goes in front, on a CPU."""


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`rows` [num_rows, in] times `weight` [out, in] transposed, plus `bias` [out]."""
    is_few = MIN_ROWS <= rows.shape[0] <= MAX_ROWS
    if not is_few or rows.device.type != "cpu" or rows.dtype != torch.float32:
        return F.linear(rows, weight, bias)
    product = torch.mm(weight, rows.t()).t().contiguous()
    return product if bias is None else product + bias


class FewRowLinear(nn.Module):
    """A linear layer over [num_rows, in] that goes through `linear`."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, rows: Tensor) -> Tensor:
        """[num_rows, in] to [num_rows, out]."""
        return linear(rows, self.weight, self.bias)
