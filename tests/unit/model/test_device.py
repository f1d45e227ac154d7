"""Devices by name: one, that is there."""

from pathlib import Path

import pytest
import torch

from eaglebench.errors import UsageError
from eaglebench.model import device as devices
from eaglebench.model.device import accelerator_facts, resolve_device


@pytest.mark.parametrize("name", ["auto", "balanced", "cuda:0,cuda:1", "cpu,cuda"])
def test_several_devices_are_refused_as_such(name: str) -> None:
    """Not as an unknown name."""
    with pytest.raises(UsageError, match="several devices; a target and its head run on one"):
        resolve_device(name)


@pytest.mark.parametrize("name", ["meta", "toaster", "mps", ""])
def test_other_devices_are_refused(name: str) -> None:
    """With those there are."""
    with pytest.raises(UsageError) as caught:
        resolve_device(name)
    assert caught.value.hint == "try cpu or cuda"


def test_a_gpu_past_the_last_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the number there are."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)

    assert resolve_device("cuda:1").index == 1
    with pytest.raises(UsageError, match="no cuda:2 here; there are 2"):
        resolve_device("cuda:2")


def test_a_cpu_has_no_accelerator() -> None:
    """Nothing is made up for it."""
    assert accelerator_facts(torch.device("cpu")) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5\n", "550.54.15"),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\n",
            "570.86.10",
        ),
        ("something else", None),
    ],
)
def test_the_driver_names_itself(tmp_path: Path, text: str, version: str | None) -> None:
    """In the words of both kernel modules; None where it does not."""
    path = tmp_path / "version"
    path.write_text(text)

    assert devices._driver_version(path) == version
    assert devices._driver_version(tmp_path / "nothing") is None
