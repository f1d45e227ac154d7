"""The options of `eaglebench run` about drawing tokens, and what other tools call them."""

import click

from eaglebench.cli.options import WordType, option
from eaglebench.records.generation import SAMPLING_RULES

VLLM_DRAFTS = {"greedy": "target-only", "probabilistic": "draft-distribution"}
"""vLLM's `draft_sample_method` as a sampling rule."""


def sampling_options() -> list[click.Parameter]:
    """Options of `run` that say how tokens and drafts are drawn."""
    section = "Sampling"
    return [
        option(
            "--temperature", section=section, type=float, help="0 decodes greedily.  [default: 0]"
        ),
        option(
            "--top-p", section=section, type=float, help="Draw among the likeliest.  [default: 1]"
        ),
        option(
            "--sampling-top-k",
            section=section,
            type=int,
            help="Draw among so many.  [default: all]",
        ),
        option(
            "--sampling-rule",
            "--draft-sample-method",
            section=section,
            type=WordType(SAMPLING_RULES, VLLM_DRAFTS),
            help="target-only accepts the head's likeliest tokens where the target draws them; "
            "draft-distribution draws drafts of a chain as well and accepts with min(1, p/q).  "
            "[default: target-only]",
        ),
        option(
            "--use-rejection-sampling",
            "--speculative-use-rejection-sampling",
            section=section,
            is_flag=True,
            help="The rule draft-distribution, by SGLang's name.",
        ),
        option(
            "--accept-threshold-single",
            "--speculative-accept-threshold-single",
            section=section,
            type=float,
            help="Accept a draft that is at least so likely; below 1 lossy.  [default: 1]",
        ),
        option(
            "--accept-threshold-acc",
            "--speculative-accept-threshold-acc",
            section=section,
            type=float,
            help="Divide a draft's chance by this; below 1 lossy.  [default: 1]",
        ),
    ]
