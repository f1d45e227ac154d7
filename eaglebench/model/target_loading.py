"""A target's weights through `transformers`, with every tensor accounted for.

The loading report of `transformers` is the account: what it lists as missing would be random
weights, what it lists as left over would be weights of another model. Tied tensors, buffers that
are computed and names that a family renames or leaves out on purpose are not in it. What the report
does not see is looked at by `checkpoint.py` before, and by `_check_finite` after.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.files import read_json_object
from eaglebench.foreign import foreign_code
from eaglebench.model.checkpoint import check_weight_files
from eaglebench.model.decoder import refuse
from eaglebench.model.model_files import MODEL_FILES, check_config, readable

_CONFIG = "config.json"
_MOST_NAMES = 5
_FLOATS = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16})


def load_model(
    path: Path | str, *, dtype: torch.dtype, device: torch.device, trust_remote_code: bool
) -> PreTrainedModel:
    """Load a folder or a Hub id onto one device, through host memory.

    Raises:
        UsageError: there is no such model, or `transformers` can't load it; with its reason.
        CheckpointError: a tensor is missing, left over, of another shape, no float or not finite,
            or a file is not whole.
    """
    with readable(Path(path), MODEL_FILES) as folder, _quiet():
        source = str(folder) if folder.is_dir() else str(path)
        if (folder / _CONFIG).is_file():
            check_config(Path(path) / _CONFIG, read_json_object(folder / _CONFIG))
        with foreign_code(lambda reason: _cannot_load(path, reason)):
            config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
        if folder.is_dir():
            method = _quantization(config)
            check_weight_files(folder, is_quantized=method is not None)
        with foreign_code(lambda reason: _cannot_load(path, reason)):
            model, report = AutoModelForCausalLM.from_pretrained(
                source,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
        _check_accounted(path, model, report)
    with foreign_code(lambda reason: _does_not_fit(path, device, reason)):
        model.to(device)
    for name, weight in model.named_parameters():
        if weight.dtype not in _FLOATS:  # what is fused and multiplied here are plain floats
            kind = str(weight.dtype).removeprefix("torch.")
            refuse(
                model, f"its weights stay quantized ({name} is {kind}); expected 16 bits or more"
            )
    _check_finite(path, model)
    loaded: PreTrainedModel = model
    return loaded


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the tables that `transformers` logs; what they say is told as an error."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _quantization(config: Any) -> str | None:
    """The method that the config names; `transformers` passes over one that it does not know."""
    given = getattr(config, "quantization_config", None)
    if given is None:
        return None
    method = given.get("quant_method") if isinstance(given, Mapping) else given.quant_method
    if method not in AUTO_QUANTIZATION_CONFIG_MAPPING:
        known = ", ".join(sorted(AUTO_QUANTIZATION_CONFIG_MAPPING))
        raise CheckpointError(
            f"config.json names the quantization {method!r}, which transformers does not know",
            hint=f"known: {known}",
        )
    return str(method)


def _cannot_load(path: Path | str, reason: str) -> UsageError:
    return UsageError(
        f"can't load a target model from {path}: {reason}",
        hint="give an asset name (eaglebench assets list), a folder or a Hub id",
    )


def _does_not_fit(path: Path | str, device: torch.device, reason: str) -> UsageError:
    return UsageError(
        f"{path} can't be put on {device}: {reason}",
        hint="a target and its head go onto one device; take a smaller --dtype or another one",
    )


def _check_accounted(path: Path | str, model: PreTrainedModel, report: Mapping[str, Any]) -> None:
    missing, extra = sorted(report["missing_keys"]), sorted(report["unexpected_keys"])
    misshapen = sorted(report["mismatched_keys"])
    sizes: Mapping[str, Tensor] = model.state_dict() if missing else {}
    kinds = {
        "missing": [f"{n} {_size(sizes[n].shape)}" if n in sizes else n for n in missing],
        "without a place": extra,
        "of another shape": [
            f"{n} {_size(own)}, expected {_size(its)}" for n, own, its in misshapen
        ],
        "not converted": [str(each) for each in report.get("error_msgs", ())],
    }
    found = [f"{kind}: {_first(names)}" for kind, names in kinds.items() if names]
    if found:
        raise CheckpointError(
            f"the weights in {path} are not those that its config.json asks for: "
            f"{'; '.join(found)}",
            hint="fetch or copy the model again, whole, with the config.json it was saved with",
        )


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def _size(shape: Sequence[int]) -> str:
    return "x".join(str(each) for each in shape) or "scalar"


def _check_finite(path: Path | str, model: PreTrainedModel) -> None:
    named = [(n, each) for n, each in model.state_dict().items() if each.dtype in _FLOATS]
    flags = torch.stack([torch.isfinite(each).all() for _, each in named]).tolist()
    broken = [name for (name, _), is_fine in zip(named, flags, strict=True) if not is_fine]
    if broken:
        dtype = str(model.dtype).removeprefix("torch.")
        raise CheckpointError(
            f"the weights in {path} hold NaN or infinite numbers in {dtype}: {_first(broken)}",
            hint="try --dtype float32 or bfloat16; if it stays, the file is damaged",
        )
