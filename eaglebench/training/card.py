"""The card of a trained head: what it is, how it was made, and how good it was found to be."""

from eaglebench.training.blueprint import Blueprint
from eaglebench.training.recipe import Acceptance, TrainingReport
from eaglebench.training.recipe import TrainingRecipe as Recipe


def write_card(
    report: TrainingReport,
    blueprint: Blueprint,
    recipe: Recipe,
    *,
    target_name: str,
    started_from: str | None,
) -> str:
    """The text of `README.md`."""
    size, states = blueprint.config.vocab_size, ", ".join(map(str, blueprint.aux_layer_ids))
    learned = (
        f"{report.conversations:,} conversations of {report.tokens:,} tokens; "
        f"{report.seen_tokens:,} tokens in {recipe.updates:,} updates"
    )
    left_out = (
        f"{report.excluded:,} conversations that share {recipe.ngram_words} words in a row with "
        "an excluded text"
    )
    levels = f"{recipe.levels} levels, each weighted {recipe.level_decay:g} of the one before"
    rates = f"Muon {recipe.matrix_rate:g}, AdamW {recipe.other_rate:g}, linear decay"
    rows = [
        ("target", target_name),
        ("format", "safetensors in bfloat16, key names of SafeAILab/EAGLE and SpecForge"),
        ("auxiliary layers", f"hidden states that enter layers {states}"),
        ("draft vocabulary", f"{len(blueprint.target_ids):,} of {size:,}"),
        ("coverage of answers", f"{report.coverage:.1%}"),
        ("began as", started_from or "drawn weights"),
        ("learned from", learned),
        ("training-time test", levels),
        ("optimizer", rates),
        ("left out", left_out),
    ]
    lines = [f"# EAGLE-3 head for {target_name}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    return "\n".join([*lines, "", *_acceptance_lines(report)]) + "\n"


def _acceptance_lines(report: TrainingReport) -> list[str]:
    """Held-out acceptance by position, before and after."""
    levels = len(report.after.by_level)
    header = " | ".join(f"{level}" for level in range(1, levels + 1))
    return [
        f"On {report.held_out:,} held-out conversations, a greedy verify step begun at every",
        "position of an answer accepts at least so many tokens in this share of steps:",
        "",
        f"| accepted at least | {header} | a step |",
        "|---|" + "---|" * (levels + 1),
        _acceptance_row("before", report.before),
        _acceptance_row("after", report.after),
    ]


def _acceptance_row(name: str, acceptance: Acceptance) -> str:
    rates = acceptance.rates or ()
    shown = " | ".join(f"{rate:.3f}" for rate in rates)
    return f"| {name} | {shown} | {acceptance.accepted_per_step or 0:.3f} |"
