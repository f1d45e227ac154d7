"""Load models by name into an embedded runtime."""

import json
from hashlib import sha256
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from eaglebench.assets.cache import config_sha256, file_sha256, model_sha256
from eaglebench.backends.embedded import EmbeddedRuntime
from eaglebench.engine.models import Models
from eaglebench.errors import UsageError
from eaglebench.model.attention import resolve_backend
from eaglebench.model.device import accelerator_facts, resolve_device
from eaglebench.model.heads.eagle import make_head
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.heads.published import PublishedHead, read_published
from eaglebench.model.target import Target
from eaglebench.model.tokenizer import HubTokenizer, check_same_tokenizer
from eaglebench.records.models import ModelChoice, RuntimeInfo

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def load_embedded(choice: ModelChoice) -> EmbeddedRuntime:
    """Load target, head and tokenizer from local folders onto one device.

    Raises:
        UsageError: the device is not there, or the models can't be loaded or don't fit each other.
    """
    device = resolve_device(choice.device)
    dtype = _dtype(choice.dtype, device)
    resolve_backend(choice.attention_backend, device)  # refuses before anything is loaded
    if choice.num_threads is not None:
        torch.set_num_threads(choice.num_threads)
    disable_progress_bar()  # its control codes would stand in logs; the command line has its own
    folder = Path(choice.target)
    published = None
    if choice.draft:
        check_same_tokenizer(folder, Path(choice.draft))
        # before the target, which takes longer: a head that can't be read is said at once
        published = read_published(choice.draft, choice.draft_config)
    tokenizer = HubTokenizer.load(folder, trust_remote_code=choice.trust_remote_code)
    target = Target.load(
        folder,
        dtype=dtype,
        device=device,
        attention_backend=choice.attention_backend,
        trust_remote_code=choice.trust_remote_code,
    )
    models = Models(target, _load_head(choice, published, target))
    return EmbeddedRuntime(models, tokenizer, _info(choice, models, tokenizer))


def _load_head(
    choice: ModelChoice, published: PublishedHead | None, target: Target
) -> DraftHead | None:
    if published is None:
        return None
    return make_head(
        published, target, algorithm=choice.algorithm, aux_layer_ids=choice.aux_layer_ids
    )


def _head_config_sha256(choice: ModelChoice) -> str | None:
    """Digest of the head's config, with what the user says otherwise."""
    if choice.draft is None:
        return None
    digest = config_sha256(Path(choice.draft))
    if not choice.draft_config:
        return digest
    said = json.dumps(dict(choice.draft_config), sort_keys=True)
    return sha256(f"{digest} {said}".encode()).hexdigest()


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise UsageError(f"unknown dtype {name!r}; expected one of {', '.join(DTYPES)}")
    return DTYPES[name]


def _warnings(models: Models, tokenizer: HubTokenizer) -> tuple[str, ...]:
    """What the user should know of target, head and tokenizer."""
    target, head = models.target, models.head
    found = list(target.warnings)
    if tokenizer.size > target.vocab_size:
        found.append(
            f"the tokenizer has {tokenizer.size} ids, the target {target.vocab_size}; a prompt with "
            "one of the others is refused"
        )
    return (*found, *(head.report.warnings if head else ()))


def _info(choice: ModelChoice, models: Models, tokenizer: HubTokenizer) -> RuntimeInfo:
    target, head = models.target, models.head
    folder = Path(choice.target)
    tokenizer_file = folder / "tokenizer.json"
    slot = target.make_pool(1).num_bytes + (head.make_pool(1).num_bytes if head else 0)
    weights = sum(p.numel() * p.element_size() for p in target.model.parameters())
    return RuntimeInfo(
        backend="embedded",
        target_id=choice.target_name or choice.target,
        target_sha256=model_sha256(folder),
        draft_id=(choice.draft_name or choice.draft) if head else None,
        draft_sha256=model_sha256(Path(choice.draft)) if head and choice.draft else None,
        tokenizer_sha256=file_sha256(tokenizer_file) if tokenizer_file.is_file() else "",
        dtype=str(target.dtype).removeprefix("torch."),
        device=str(target.device),
        attention_backend=target.attention_backend,
        vocab_size=target.vocab_size,
        draft_vocab_size=head.draft_vocab_size if head else None,
        context_length=target.context_length,
        stop_token_ids=target.stop_token_ids,
        algorithm=head.algorithm if head else None,
        aux_layer_ids=head.aux_layer_ids if head else (),
        aux_counting=head.report.aux_counting if head else None,
        draft_positions=head.max_positions if head else None,
        draft_config=choice.draft_config if head else None,
        warnings=_warnings(models, tokenizer),
        weights_bytes=weights,
        kv_bytes_per_slot=slot,
        tokenizer_size=tokenizer.size,
        window=target.window,
        num_threads=torch.get_num_threads(),
        accelerator=accelerator_facts(target.device),
        target_config_sha256=config_sha256(folder),
        draft_config_sha256=_head_config_sha256(choice) if head else None,
        window_bytes_per_slot=target.make_hybrid_pool(0, 1).num_bytes if target.window else 0,
    )
