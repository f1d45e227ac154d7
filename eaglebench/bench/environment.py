"""The environment fingerprint, in three classes.

exact    must agree before integers are compared; the version of eaglebench is not among them, since
         versions of the code are what a gate compares
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

from eaglebench.records.models import RuntimeInfo

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of CPU in a period, or `max`; a container's limit."""
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
            **{name: _version(name) for name in _LIBRARIES},
        },
        "timing": {
            "cpu": cpu.get("brand_raw"),
            "cores": psutil.cpu_count(logical=False),
            "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            "memory_bytes": psutil.virtual_memory().total,
            "os": f"{platform.system()} {platform.release()}",
            "governor": _first_line(_GOVERNOR),
            "cpu_quota": _first_line(_CPU_QUOTA),
        },
        "info": {
            "eaglebench": _version("eaglebench"),
            "python": platform.python_version(),
            "host": sha256(platform.node().encode()).hexdigest()[:DIGEST_LENGTH],
            "load_1m": psutil.getloadavg()[0],
        },
    }


def fingerprint(info: RuntimeInfo, num_threads: int | None) -> dict[str, Any]:
    """The environment of a run, with a digest of the classes that decide.

    `num_threads` is what was asked for; where the runtime says how many it uses, that counts.
    """
    facts = machine_facts()
    facts["exact"] |= {
        "target_sha256": info.target_sha256,
        "draft_sha256": info.draft_sha256,
        "tokenizer_sha256": info.tokenizer_sha256,
        "target_config_sha256": info.target_config_sha256,
        "draft_config_sha256": info.draft_config_sha256,
        "dtype": info.dtype,
        "device": info.device,
        **_device_facts(info, facts["timing"]["cpu"]),
        "attention_backend": info.attention_backend,
        "num_threads": num_threads if info.num_threads is None else info.num_threads,
        "blas": _loaded_libraries("blas"),
        "openmp": _loaded_libraries("openmp"),
    }
    if info.engine is not None:
        facts["exact"]["engine"] = info.backend
        facts["info"] |= {f"engine {name}": number for name, number in info.engine.items()}
    digests = {name: _digest(facts[name]) for name in ("exact", "timing")}
    return {**facts, "digest": digests}


def _device_facts(info: RuntimeInfo, cpu: str | None) -> dict[str, Any]:
    """What computes. Products of few rows depend on the CPU (model/linear.py), all on a GPU."""
    found = info.accelerator
    if found is None:
        return {"device_name": cpu if info.device == "cpu" else info.device}
    return {
        "device_name": found.name,
        "compute_capability": found.compute_capability,
        "cuda": found.cuda,
        "driver": found.driver,
        "device_memory_bytes": found.memory_bytes,
    }


def _loaded_libraries(kind: str) -> str | None:
    """Names and versions of torch's own thread pools of a kind; others come and go with imports."""
    from threadpoolctl import threadpool_info  # noqa: PLC0415  # looks at every loaded library

    found = [
        pool
        for pool in threadpool_info()
        if pool["user_api"] == kind and "torch" in Path(pool["filepath"]).parts
    ]
    names = {f"{pool['internal_api']} {pool['version'] or ''}".strip() for pool in found}
    return ", ".join(sorted(names)) or None


def _first_line(path: Path) -> str | None:
    """A fact of the system; None where it does not say."""
    try:
        return path.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return None


def code_sha256(package: Path) -> str:
    """A digest of the package's own code: the same under any commit, or without git at all."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


MOST_CHANGED = 20
"""Changed files that a record names."""


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit of the code under measurement and what differs from it; None outside a checkout.

    Tracked files that were changed count, and new ones inside the package: what a run or a baseline
    leaves beside the code is no change of it.
    """
    sha = _git(folder, "rev-parse", "HEAD")
    if sha is None:
        return None
    tracked = _git(folder, "status", "--porcelain", "--untracked-files=no") or ""
    new = _git(folder, "status", "--porcelain", "--untracked-files=all", "--", ".") or ""
    lines = tracked.splitlines() + [line for line in new.splitlines() if line.startswith("??")]
    changed = [line.split(maxsplit=1)[-1] for line in lines]
    return {"sha": sha, "dirty": bool(changed), "changed": changed[:MOST_CHANGED]}


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
