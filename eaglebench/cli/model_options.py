"""The options of `eaglebench run` that say which models are loaded, and what other tools call them."""

import click

from eaglebench.cli.draft_config import draft_config_option
from eaglebench.cli.options import option


def model_options() -> list[click.Parameter]:
    """Options of `run` that say what is loaded, and how."""
    section = "Models"
    return [
        option(
            "--model",
            "--model-path",
            "--target-model",
            section=section,
            help="Target: asset name, folder or Hub id.  [default: smollm2-135m]",
        ),
        option(
            "--draft-model",
            "--speculative-draft-model-path",
            "--speculative-draft-model",
            section=section,
            help="EAGLE head; by default the one that belongs to the target.",
        ),
        draft_config_option(section),
        option(
            "--dtype",
            section=section,
            help="float64, float32, bfloat16 or float16.  [default: float32 on a CPU, bfloat16 on "
            "a GPU]",
        ),
        option("--device", section=section, help="cpu or cuda.  [default: cpu]"),
        option("--attention-backend", section=section, help="Attention.  [default: auto]"),
        option("--num-threads", section=section, type=int, help="CPU threads."),
        option(
            "--trust-remote-code",
            section=section,
            is_flag=True,
            help="Run Python code that comes with a model.",
        ),
    ]
