"""Devices by the name that users give."""

import torch

from eaglebench.errors import UsageError


def resolve_device(name: str) -> torch.device:
    """The device of that name.

    Raises:
        UsageError: there is none here.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"unknown device {name!r}", hint="try cpu or cuda") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here", hint="use --device cpu")
    return device
