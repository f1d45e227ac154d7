"""Small arrays on their way to the device: many in one copy.

Every copy waits for the host to hand it over, whatever its size, so a step gathers what it has to say
about its rows and says it at once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def upload(arrays: Sequence[NDArray[Any]], device: torch.device) -> list[Tensor]:
    """The arrays as tensors of their shapes on a device, parts of one copied buffer.

    Args:
        arrays: of one type; none at all is no copy.
        device: where to.
    """
    if not arrays:
        return []
    flat = np.concatenate([array.reshape(-1) for array in arrays])
    parts = torch.split(torch.from_numpy(flat).to(device), [array.size for array in arrays])
    return [part.view(array.shape) for part, array in zip(parts, arrays, strict=True)]
