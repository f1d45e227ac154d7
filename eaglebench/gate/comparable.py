"""Whether two snapshots may be compared at all, and which names differ if not."""

from collections.abc import Mapping

from eaglebench.contracts.snapshot import Snapshot

PORTABLE_DTYPE = "float64"
PORTABLE = ("target_sha256", "draft_sha256", "tokenizer_sha256", "dtype")
"""In float64 near-ties do not occur, so counts need only the same models, not the same machine."""


def workload_differences(candidate: Snapshot, baseline: Snapshot) -> list[str]:
    """Why the two measured different work; empty where they did not.

    An option that one of them does not know yet did not exist then, and counts as left alone.
    """
    found = []
    for name in ("suite", "suite_version", "suite_sha256"):
        mine, theirs = getattr(candidate, name), getattr(baseline, name)
        if mine != theirs:
            found.append(f"{name}: {_short(mine)} here, {_short(theirs)} in the baseline")
            break  # a different suite differs in everything else too
    shared = candidate.workload.keys() & baseline.workload.keys()
    mine, theirs = (
        {name: workload[name] for name in shared}
        for workload in (candidate.workload, baseline.workload)
    )
    return found + _differences(mine, theirs)


def exact_differences(candidate: Snapshot, baseline: Snapshot) -> list[str]:
    """Facts that decide integers and differ."""
    mine, theirs = candidate.exact, baseline.exact
    if mine.get("dtype") == theirs.get("dtype") == PORTABLE_DTYPE:
        mine = {name: mine.get(name) for name in PORTABLE}
        theirs = {name: theirs.get(name) for name in PORTABLE}
    return _differences(mine, theirs)


def timing_differences(candidate: Snapshot, baseline: Snapshot) -> list[str]:
    """Facts that decide times and differ; those that decide integers included."""
    return _differences(candidate.exact, baseline.exact) + _differences(
        candidate.timing, baseline.timing
    )


def _differences(mine: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    return [
        f"{name}: {_short(mine.get(name))} here, {_short(theirs.get(name))} in the baseline"
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]


def _short(value: object) -> str:
    text = str(value)
    return f"{text[:12]}..." if len(text) == 64 else text  # a SHA-256
