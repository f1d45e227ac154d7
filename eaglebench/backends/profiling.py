"""A profiler trace of everything the engine does in a stretch of a program."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile


@contextmanager
def profile_to(path: Path) -> Iterator[None]:
    """Write a Chrome trace of the enclosed block, also when the block is left by an error.

    Raises:
        OSError: the trace can't be written.
    """
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    profiler = profile(activities=activities)
    try:
        with profiler:
            yield
    finally:
        profiler.export_chrome_trace(str(path))
