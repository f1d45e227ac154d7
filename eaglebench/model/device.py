"""Devices by the name that users give, and what they are."""

import re
from pathlib import Path

import torch

from eaglebench.errors import UsageError
from eaglebench.records.models import AcceleratorFacts

_SEVERAL = frozenset({"auto", "balanced", "balanced_low_0", "sequential", "all"})
"""What `device_map` of `transformers` calls a spread over several devices."""
_DRIVER_FILE = Path("/proc/driver/nvidia/version")
_DRIVER = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")


def resolve_device(name: str) -> torch.device:
    """The device of that name; a UsageError if there is none here, or several are asked for."""
    if name in _SEVERAL or "," in name:
        raise UsageError(
            f"--device {name} asks for several devices; a target and its head run on one",
            hint="name one, such as cuda:0; choose others with CUDA_VISIBLE_DEVICES",
        )
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"unknown device {name!r}", hint="try cpu or cuda") from error
    if device.type not in {"cpu", "cuda"}:
        raise UsageError(f"{name} is not supported", hint="try cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here", hint="use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        raise UsageError(f"there is no {device} here; there are {count}, counted from 0")
    return device


def accelerator_facts(device: torch.device) -> AcceleratorFacts | None:
    """What a CUDA device is; None for a CPU."""
    if device.type != "cuda":
        return None
    facts = torch.cuda.get_device_properties(device)
    return AcceleratorFacts(
        name=str(facts.name),
        compute_capability=f"{facts.major}.{facts.minor}",
        cuda=torch.version.cuda,
        driver=_driver_version(_DRIVER_FILE),
        memory_bytes=int(facts.total_memory),
    )


def _driver_version(path: Path) -> str | None:
    """As the kernel module names itself; None where the system does not show it."""
    try:
        found = _DRIVER.search(path.read_text(encoding="utf-8"))
    except OSError:
        return None
    return None if found is None else found[1]
