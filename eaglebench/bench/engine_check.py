"""What an engine can't be asked, found before anything is loaded."""

from collections.abc import Mapping
from typing import Any

from eaglebench.backends.registry import abilities_of
from eaglebench.errors import UsageError
from eaglebench.plan.cell import SkippedCell
from eaglebench.plan.matrix import Expansion
from eaglebench.plan.option import Notice
from eaglebench.plan.options import config_options, typed_flag
from eaglebench.plan.run_config import RunConfig
from eaglebench.plan.setups import OUTSIDE
from eaglebench.records.knobs import base_arm


def with_own_arms(config: RunConfig, given: Mapping[str, Any], notice: Notice) -> RunConfig:
    """Without arms that a suite would have and the engine has not; those that were asked for stay."""
    left_out = _missing_arms(config)
    kept = tuple(arm for arm in config.arms if arm not in left_out)
    if "arms" in given or not left_out or not kept:
        return config
    notice(f"note: --backend {config.backend} has no arm {', '.join(left_out)}; left out")
    return config.model_copy(update={"arms": kept})


def check_engine(config: RunConfig, expansion: Expansion) -> Expansion:
    """The cells that the engine of a run has; those it has not are left out with the reason.

    Raises:
        UsageError: the engine is unknown, or has not what was asked for: an arm, an option, any cell.
    """
    name, abilities = config.backend, abilities_of(config.backend)
    if missing := _missing_arms(config):
        raise UsageError(
            f"--backend {name} has no arm {', '.join(missing)}; it has {', '.join(abilities.arms)}",
            hint="faults are planted in the embedded engine alone",
        )
    options = config_options()
    for option, why in abilities.refuses.items():
        if _is_given(config, option):
            flag = typed_flag(option, options[option])
            raise UsageError(f"{flag} is not to be had of --backend {name}: {why}")
    for option in () if abilities.is_outside else OUTSIDE:
        if _is_given(config, option):
            flag = typed_flag(option, options[option])
            raise UsageError(f"{flag} is without effect: --backend {name} runs in this process")
    skipped: dict[str, str] = {
        cell.cell_id: f"--backend {name}: {reason}"
        for cell in expansion.cells
        if (reason := abilities.obstacle(cell.knobs)) is not None
    }
    cells = tuple(cell for cell in expansion.cells if cell.cell_id not in skipped)
    if not cells:
        raise UsageError("; ".join(dict.fromkeys(skipped.values())))
    left_out = tuple(SkippedCell(cell_id=cell, reason=reason) for cell, reason in skipped.items())
    return Expansion(cells=cells, skipped=(*expansion.skipped, *left_out))


def _missing_arms(config: RunConfig) -> list[str]:
    known = abilities_of(config.backend).arms
    return [arm for arm in config.arms if base_arm(arm) not in known]


def _is_given(config: RunConfig, option: str) -> bool:
    default: Any = RunConfig.model_fields[option].get_default(call_default_factory=True)
    return bool(getattr(config, option) != default)
