"""The options of `eaglebench run`: our names, the names other tools use, and what they mean.

No option has a default here: what is not given is settled from the suite and `RunConfig`.
"""

from collections.abc import Sequence

import click

from eaglebench.cli.model_options import model_options
from eaglebench.cli.options import AliasedOption, ListType, PairType, option, refuse_top_k
from eaglebench.cli.sampling_options import sampling_options
from eaglebench.cli.settings import apply_settings
from eaglebench.records.knobs import AUTO

LIST_OPTIONS = (
    "page_size",
    "chunked_prefill_size",
    "sliding_window",
    "num_steps",
    "eagle_topk",
    "num_draft_tokens",
    "num_speculative_tokens",
    "parallel",
    "preallocation",
    "preallocate_tokens",
)
"""Axes of the matrix."""


def run_parameters() -> list[click.Parameter]:
    """All parameters of `run`, in the order of its help."""
    return [
        click.Argument(["suite"], required=False),
        *model_options(),
        *_speculation_options(),
        *_cache_options(),
        *_question_options(),
        *sampling_options(),
        *_engine_options(),
        *_session_options(),
        *_pair_options(),
        *_output_options(),
    ]


def _axis(
    name: str,
    *aliases: str,
    section: str,
    help: str,  # noqa: A002  # click's own name
    text: bool = False,
    words: Sequence[str] = (),
) -> AliasedOption:
    return option(
        name,
        *aliases,
        section=section,
        type=ListType(str if text else int, words),
        multiple=True,
        help=help,
    )


def _speculation_options() -> list[click.Parameter]:
    section = "Speculation (lists make a matrix)"
    return [
        option(
            "--algorithm",
            "--speculative-algorithm",
            "--speculative-algo",
            section=section,
            type=click.Choice(("EAGLE3", "EAGLE", "NONE"), case_sensitive=False),
            help="EAGLE is for heads of EAGLE 1 and 2, NONE decodes plainly.  [default: the head's]",
        ),
        option(
            "--aux-layer-ids",
            section=section,
            type=ListType(),
            help="States of the target that feed the head: id k is the one after k layers.  "
            "[default: as its config says]",
        ),
        _axis(
            "--num-steps",
            "--speculative-num-steps",
            "--steps",
            section=section,
            help="Levels of a draft.  [default: 2]",
        ),
        _axis(
            "--eagle-topk",
            "--speculative-eagle-topk",
            "--topk",
            section=section,
            help="Branches a level; 1 is a chain.  [default: 1]",
        ),
        _axis(
            "--num-draft-tokens",
            "--speculative-num-draft-tokens",
            section=section,
            words=(AUTO,),
            help="Tokens verified together; counts the root.  [default: auto: steps + 1 in a "
            "chain, 1 + steps x top-k in a tree]",
        ),
        _axis(
            "--num-speculative-tokens",
            "--num-spec-tokens",
            section=section,
            help="vLLM's K: a chain of K, the root not counted.",
        ),
        AliasedOption(
            ["--top-k"],
            hidden=True,
            expose_value=False,
            is_eager=True,
            envvar=None,
            callback=refuse_top_k,
        ),
    ]


def _cache_options() -> list[click.Parameter]:
    section = "Cache (lists make a matrix)"
    return [
        _axis("--page-size", "--block-size", section=section, help="Slots a page.  [default: 1]"),
        _axis(
            "--chunked-prefill-size",
            "--max-num-batched-tokens",
            section=section,
            help="Most prompt tokens a step; -1 is off.  [default: -1]",
        ),
        _axis(
            "--sliding-window",
            "--swa",
            section=section,
            help="What window layers see, the current token included; 0 is all.  [default: the "
            "model's]",
        ),
        _axis(
            "--preallocation",
            section=section,
            text=True,
            help="none, lookahead-blocks or covered.  [default: none]",
        ),
        _axis("--preallocate-tokens", section=section, help="What it aims at.  [default: 64]"),
        option(
            "--arms",
            section=section,
            type=ListType(str),
            multiple=True,
            help="What is compared: radix, force-miss, no-cache, or a fault: unigram, "
            "no-lookahead, kv-reuse, seam-guess.  [default: radix,no-cache]",
        ),
        option(
            "--disable-radix-cache",
            "--no-enable-prefix-caching",
            section=section,
            is_flag=True,
            help="Only the no-cache arm.",
        ),
        option("--no-baseline-arm", section=section, is_flag=True, help="All arms but no-cache."),
    ]


def _question_options() -> list[click.Parameter]:
    section = "Questions"
    return [
        AliasedOption(
            ["--num-questions", "-n"],
            aliases=("--num-prompts", "--limit"),
            section=section,
            type=int,
            help="Most questions.  [default: the suite's]",
        ),
        option(
            "--question-file",
            "--dataset-path",
            "--dataset",
            section=section,
            help="JSON Lines in MT-Bench's shape, or hf:OWNER/NAME@SPLIT, instead of the suite's.",
        ),
        option(
            "--question-field",
            section=section,
            type=PairType(),
            multiple=True,
            help="OURS=THEIRS, where field names differ, such as turns=messages.",
        ),
        option(
            "--max-new-tokens",
            "--max-tokens",
            "--output-len",
            section=section,
            type=int,
            help="Most tokens of an answer.  [default: 256]",
        ),
        option("--ignore-eos", section=section, is_flag=True, help="Go on after an end token."),
        option(
            "--stop", section=section, multiple=True, envvar=None, help="Text that ends an answer."
        ),
        option("--system-prompt", section=section, help="Instead of the template's own."),
        option(
            "--prompt-format",
            section=section,
            type=click.Choice(("chat", "raw")),
            help="raw feeds text without a chat template.  [default: chat]",
        ),
    ]


def _engine_options() -> list[click.Parameter]:
    section = "Engine"
    return [
        _axis(
            "--parallel",
            "--max-concurrency",
            "--batch-size",
            section=section,
            help="Most requests at a time; a list makes a matrix.  [default: 1]",
        ),
        option(
            "--max-total-tokens",
            section=section,
            type=int,
            help="Slots of the KV pools.  [default: 16384]",
        ),
        option(
            "--swa-full-tokens-ratio",
            section=section,
            type=float,
            help="Slots of sliding-window layers, as a share of those.  [default: 0.8]",
        ),
        option(
            "--context-length",
            "--max-model-len",
            section=section,
            type=int,
            help="Most tokens of a request.  [default: the model's]",
        ),
    ]


def _session_options() -> list[click.Parameter]:
    section = "Session"
    return [
        option(
            "--seed",
            "--random-seed",
            section=section,
            type=int,
            help="Draws workloads and the order of arms.  [default: 0]",
        ),
        option(
            "--warmup",
            "--warmup-requests",
            "--num-warmups",
            section=section,
            type=int,
            help="Passes over a prompt outside the suite.  [default: 1]",
        ),
        option(
            "--replay",
            section=section,
            help="Run or JSON Lines file whose tokens are taken as the target's choices.",
        ),
        option("--matrix", section=section, help="YAML, TOML or JSON file; or compatibility."),
        AliasedOption(
            ["--config", "-c"],
            aliases=("--scenario",),
            section=section,
            is_eager=True,
            expose_value=False,
            callback=apply_settings,
            help="File with options; also [tool.eaglebench] in pyproject.toml. A flag comes "
            "before EAGLEBENCH_<OPTION>, and that before the file.",
        ),
        option(
            "--dry-run",
            section=section,
            is_flag=True,
            help="Show cells and an estimate of time; load nothing.",
        ),
        option(
            "--resume",
            section=section,
            is_flag=False,
            flag_value="latest",
            envvar=None,
            help="Go on with a run (id, folder, latest).",
        ),
        option(
            "--continue-on-error",
            section=section,
            is_flag=True,
            help="Record a question that can't run, or fails while it runs, and go on.",
        ),
        option("--profile", section=section, is_flag=True, help="Write a torch profiler trace."),
    ]


def _pair_options() -> list[click.Parameter]:
    section = "Session"
    return [
        option(
            "--pairs",
            "--num-runs",
            "--repeat",
            "--rounds",
            section=section,
            help="Passes over the questions, LEAST:MOST; times need 8.  [default: 1]",
        ),
        option(
            "--precision",
            "--convergence-threshold",
            section=section,
            help="Half-width of the throughput ratio to stop at.  [default: 1%]",
        ),
    ]


def _output_options() -> list[click.Parameter]:
    section = "Output"
    return [
        AliasedOption(
            ["--output-dir", "-o"],
            aliases=("--result-dir", "--artifact-dir", "--outputs-dir"),
            section=section,
            envvar=["EAGLEBENCH_OUTPUT_DIR", "EAGLEBENCH_DIR"],
            help="Where runs are kept.  [default: results]",
        ),
        AliasedOption(["--experiment-name", "-e"], section=section, help="Part of the run's id."),
        option(
            "--label",
            "--metadata",
            "--tag",
            section=section,
            type=PairType(),
            multiple=True,
            help="key=value, kept with the run.",
        ),
        option(
            "--progress",
            section=section,
            type=click.Choice(("auto", "rich", "plain", "none")),
            help="How progress is shown, on standard error.  [default: auto]",
        ),
        AliasedOption(["--disable-tqdm"], section=section, hidden=True, is_flag=True, envvar=None),
        option(
            "--format",
            section=section,
            type=click.Choice(("table", "json")),
            help="What goes to standard output.  [default: table]",
        ),
    ]
