"""Whether two snapshots may be compared at all, and what differs if not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eaglebench.records.digests import shown
from eaglebench.records.flags import flag_of
from eaglebench.records.models import DEFAULT_BACKEND
from eaglebench.records.snapshot import ArmCounts, Snapshot

PORTABLE_DTYPE = "float64"
PORTABLE = ("tokenizer_sha256", "dtype")
"""In float64 near-ties do not occur, so counts need only the same models, not the same machine.
Target and head are compared everywhere (`workload_differences`)."""
_MODELS = {
    "model": ("target_sha256", "target_config_sha256"),
    "draft_model": ("draft_sha256", "draft_config_sha256"),
}
"""Options that name a model, and the digests that say which one it was."""
_CONFIGS = ("target_config_sha256", "draft_config_sha256")
"""Digests that older runs don't have."""
_ASKED = ("question_file", "question_fields")
"""Options that say where questions come from; what was asked has a digest of its own."""
_NOT_GIVEN, _NOT_RECORDED = "not given", "not recorded"
_REPLAY = ("replay",)
"""Where given answers come from; they are in that digest as well. `latest` is no name of a run."""
_SILENT = ("draft_config",)
"""Options that say nothing unless they are given: where one is not known, it was not given."""


def workload_differences(candidate: Snapshot, baseline: Snapshot) -> list[str]:
    """Why the two measured different work; empty where they did not.

    Models are told apart by their digests: the same files under another path are the same model,
    other files under one name are not. An option that one of them does not know yet did not exist
    then, and counts as left alone.
    """
    found = []
    for name in ("suite", "suite_version", "suite_sha256"):
        mine, theirs = getattr(candidate, name), getattr(baseline, name)
        if mine != theirs:
            found.append(f"{name}: {shown(mine)} here, {shown(theirs)} in {baseline.name}")
            break  # a different suite differs in everything else too
    by_digest = [name for name in _MODELS if _has_digest(name, candidate, baseline)]
    found += [text for name in by_digest if (text := _other_model(name, candidate, baseline))]
    passed_over = set(by_digest)
    if knows_prompts(candidate, baseline):
        passed_over |= {*_ASKED, *(_REPLAY if _both_replay(candidate, baseline) else ())}
    shared = candidate.workload.keys() & baseline.workload.keys() - passed_over
    mine, theirs = (
        {name: workload.get(name) for name in {*shared, *_SILENT}}
        for workload in (candidate.workload, baseline.workload)
    )
    return found + _differences(mine, theirs, baseline.name, _NOT_GIVEN)


SETUP = (
    *(
        "backend",
        "engine_args",
        "model",
        "draft_model",
        "draft_config",
        "aux_layer_ids",
        "algorithm",
        "dtype",
    ),
    *("temperature", "top_p", "sampling_top_k", "sampling_rule", "seed"),
    *("accept_threshold_single", "accept_threshold_acc"),
)
"""Options that are compared for their own sake: which head, which shape, which temperature."""
_ENGINES = ("backend", "engine_args")
_OF_SETUP = (*(name for pair in _MODELS.values() for name in pair), "dtype")
_OF_ENGINE = ("attention_backend", "engine", "num_threads", "blas", "openmp")
"""Facts of this process, which say nothing of what an engine outside computes with."""


def without_setup(snapshot: Snapshot, *, is_one_engine: bool = True) -> Snapshot:
    """The snapshot without what two setups may differ in; what is left is the questions."""
    passed_over = _OF_SETUP if is_one_engine else (*_OF_SETUP, *_OF_ENGINE)
    return replace(
        snapshot,
        workload={n: v for n, v in snapshot.workload.items() if n not in SETUP},
        exact={n: v for n, v in snapshot.exact.items() if n not in passed_over},
    )


def are_only_engines(setup: Sequence[str]) -> bool:
    """Whether what two setups differ in is the engine alone, which may change no draft."""
    return bool(setup) and all(text.partition(":")[0] in _ENGINES for text in setup)


def engine_of(snapshot: Snapshot) -> object:
    """Which engine ran it; runs from before there were several are the embedded one's."""
    return snapshot.workload.get("backend", DEFAULT_BACKEND)


def _both_replay(candidate: Snapshot, baseline: Snapshot) -> bool:
    return all(each.workload.get("replay") is not None for each in (candidate, baseline))


def knows_prompts(*snapshots: Snapshot) -> bool:
    """Whether all of them recorded what every question asked."""
    return all(
        question.prompts_sha is not None
        for snapshot in snapshots
        for arm in snapshot.arms
        for question in arm.questions
    )


def other_prompts(candidate: ArmCounts, baseline: ArmCounts) -> tuple[str, ...]:
    """Questions that asked something else under the same id; those not recorded are left out."""
    theirs = {question.question_id: question.prompts_sha for question in baseline.questions}
    return tuple(
        question.question_id
        for question in candidate.questions
        if question.prompts_sha is not None
        and theirs.get(question.question_id) is not None
        and theirs[question.question_id] != question.prompts_sha
    )


def exact_differences(candidate: Snapshot, baseline: Snapshot) -> list[str]:
    """Facts that decide integers and differ."""
    mine, theirs = _exact(candidate, baseline)
    if mine.get("dtype") == theirs.get("dtype") == PORTABLE_DTYPE:
        mine = {name: mine.get(name) for name in PORTABLE}
        theirs = {name: theirs.get(name) for name in PORTABLE}
    return _differences(mine, theirs, baseline.name)


def timing_differences(candidate: Snapshot, baseline: Snapshot) -> list[str]:
    """Facts that decide times and differ; those that decide integers included."""
    mine, theirs = _exact(candidate, baseline)
    timing, where = (candidate.timing, baseline.timing), baseline.name
    return _differences(mine, theirs, where) + _differences(*timing, where)


def _exact(
    candidate: Snapshot, baseline: Snapshot
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Both environments, without digests that one of them is too old to have."""
    missing = {n for n in _CONFIGS if None in (candidate.exact.get(n), baseline.exact.get(n))}
    mine, theirs = (
        {name: value for name, value in each.exact.items() if name not in missing}
        for each in (candidate, baseline)
    )
    return mine, theirs


def _has_digest(name: str, candidate: Snapshot, baseline: Snapshot) -> bool:
    weights = _MODELS[name][0]
    return weights in candidate.exact and weights in baseline.exact


def _other_model(name: str, candidate: Snapshot, baseline: Snapshot) -> str | None:
    """What to say of a model whose digests differ; None where they agree."""
    mine, theirs = _exact(candidate, baseline)
    weights, config = _MODELS[name]
    for digest, what in ((weights, "weights"), (config, "config")):
        if mine.get(digest) != theirs.get(digest):
            here, there = (shown(each.get(digest), none=_NOT_RECORDED) for each in (mine, theirs))
            return (
                f"{digest}: {here} here, {there} in {baseline.name} "
                f"(other {what} of {flag_of(name)})"
            )
    return None


def _differences(
    mine: Mapping[str, object],
    theirs: Mapping[str, object],
    where: str,
    none: str = _NOT_RECORDED,
) -> list[str]:
    return [
        f"{name}: {shown(mine.get(name), none=none)} here, "
        f"{shown(theirs.get(name), none=none)} in {where}"
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]
