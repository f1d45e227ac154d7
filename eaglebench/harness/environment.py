"""The environment fingerprint, in three classes.

exact    must agree before integers are compared
timing   must agree as well before times are compared
info     for people
"""

import os
import platform
import subprocess
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eaglebench.contracts.backend import RuntimeInfo

_LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
DIGEST_LENGTH = 12


def machine_facts() -> dict[str, dict[str, Any]]:
    """What can be said of this machine without loading a model."""
    import cpuinfo  # noqa: PLC0415  # asks the system, slow
    import psutil  # noqa: PLC0415

    cpu = cpuinfo.get_cpu_info()
    return {
        "exact": {
            "arch": platform.machine(),
            "python": platform.python_version(),
            "eaglebench": _version("eaglebench"),
            **{name: _version(name) for name in _LIBRARIES},
        },
        "timing": {
            "cpu": cpu.get("brand_raw"),
            "cores": psutil.cpu_count(logical=False),
            "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            "memory_bytes": psutil.virtual_memory().total,
            "os": f"{platform.system()} {platform.release()}",
        },
        "info": {
            "host": sha256(platform.node().encode()).hexdigest()[:DIGEST_LENGTH],
            "load_1m": psutil.getloadavg()[0],
        },
    }


def fingerprint(info: RuntimeInfo, num_threads: int | None) -> dict[str, Any]:
    """The environment of a run, with a digest of the classes that decide."""
    facts = machine_facts()
    facts["exact"] |= {
        "target_sha256": info.target_sha256,
        "draft_sha256": info.draft_sha256,
        "tokenizer_sha256": info.tokenizer_sha256,
        "dtype": info.dtype,
        "device": info.device,
        "attention_backend": info.attention_backend,
        "num_threads": num_threads,
    }
    digests = {name: _digest(facts[name]) for name in ("exact", "timing")}
    return {**facts, "digest": digests}


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and dirty flag of the code under measurement; None outside a checkout."""
    sha = _git(folder, "rev-parse", "HEAD")
    if sha is None:
        return None
    return {"sha": sha, "dirty": bool(_git(folder, "status", "--porcelain"))}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  # fixed arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607  # whichever git is on the path
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _digest(facts: dict[str, Any]) -> str:
    text = "\n".join(f"{name}={facts[name]}" for name in sorted(facts))
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
