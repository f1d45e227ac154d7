"""Linear layers for a handful of rows.

A verify step multiplies each weight with two to a few dozen rows. BLAS libraries choose a kernel
by the shape of the left operand, and with so few rows in front some of them read the weight
several times slower than memory allows; with the weight in front they don't. Which of them do is a
fact of the library, the dtype and the vendor of the CPU (`benchmarks/linear.py` measures both ways):

    bfloat16                 weight in front, 1.2 to 1.4 times faster where there are AMX units
    float32, AMD             weight in front, up to twice as fast
    float32, other vendors   rows in front; the other way takes more than twice as long

The choice is made by these facts and not by a measurement, so that a run computes the same products
every time.
"""

from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MIN_ROWS, MAX_ROWS = 2, 16
"""Row counts for which the weight may go in front, on a CPU."""
_CPU_FACTS = Path("/proc/cpuinfo")
_SLOW_WITH_FEW_ROWS = "AuthenticAMD"


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`rows` [num_rows, in] times `weight` [out, in] transposed, plus `bias` [out]."""
    is_few = MIN_ROWS <= rows.shape[0] <= MAX_ROWS
    if not is_few or rows.device.type != "cpu" or not puts_weight_in_front(rows.dtype):
        return F.linear(rows, weight, bias)
    product = torch.mm(weight, rows.t()).t().contiguous()
    return product if bias is None else product + bias


@cache
def puts_weight_in_front(dtype: torch.dtype) -> bool:
    """Whether a few rows are multiplied with the weight in front on this CPU."""
    if dtype == torch.bfloat16:
        return True
    return dtype == torch.float32 and cpu_vendor() == _SLOW_WITH_FEW_ROWS


@cache
def cpu_vendor() -> str | None:
    """The vendor as the kernel names it; None where it does not."""
    try:
        lines = _CPU_FACTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = (line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id"))
    return next(found, None)


class FewRowLinear(nn.Module):
    """A linear layer over [num_rows, in] that goes through `linear`."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, rows: Tensor) -> Tensor:
        """[num_rows, in] to [num_rows, out]."""
        return linear(rows, self.weight, self.bias)
