"""What has to be known here of models that an engine outside loads: names, digests, limits, tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from transformers import AutoConfig, GenerationConfig

from eaglebench.assets.cache import config_sha256, file_sha256, model_sha256
from eaglebench.errors import UsageError
from eaglebench.foreign import foreign_code
from eaglebench.model.heads.published import PublishedHead, read_published
from eaglebench.model.target_config import context_length, stop_token_ids
from eaglebench.model.tokenizer import HubTokenizer, check_same_tokenizer
from eaglebench.records.models import ModelChoice, RuntimeInfo


@dataclass(frozen=True, slots=True)
class OutsideModels:
    """A target's config, its tokenizer, and the head."""

    config: Any
    stop_ids: tuple[int, ...]
    tokenizer: HubTokenizer
    head: PublishedHead | None

    def info(self, choice: ModelChoice, *, engine: Mapping[str, str]) -> RuntimeInfo:
        """For the record; what the engine alone knows is not measured."""
        folder, head = Path(choice.target), self.head
        text = self.config.get_text_config()
        tokenizer_file = folder / "tokenizer.json"
        return RuntimeInfo(
            backend=choice.backend,
            target_id=choice.target_name or choice.target,
            target_sha256=model_sha256(folder),
            draft_id=(choice.draft_name or choice.draft) if head else None,
            draft_sha256=model_sha256(Path(choice.draft)) if head and choice.draft else None,
            tokenizer_sha256=file_sha256(tokenizer_file) if tokenizer_file.is_file() else "",
            dtype=choice.dtype or ("float32" if choice.device == "cpu" else "bfloat16"),
            device=choice.device,
            attention_backend=choice.backend,
            vocab_size=int(text.vocab_size),
            draft_vocab_size=None,
            context_length=context_length(text),
            stop_token_ids=self.stop_ids,
            aux_layer_ids=(),
            warnings=head.warnings if head else (),
            weights_bytes=None,
            kv_bytes_per_slot=None,
            algorithm=head.algorithm.value if head else None,
            tokenizer_size=self.tokenizer.size,
            num_threads=choice.num_threads,
            target_config_sha256=config_sha256(folder),
            draft_config_sha256=config_sha256(head.path) if head else None,
            engine=engine,
        )


def read_models(choice: ModelChoice) -> OutsideModels:
    """Read configs and tokenizer; weights are the engine's business.

    Raises:
        UsageError: something of it is missing or broken, or the head is for another tokenizer.
    """
    folder = Path(choice.target)
    head = None
    if choice.draft:
        check_same_tokenizer(folder, Path(choice.draft))
        head = read_published(choice.draft)
    with foreign_code(lambda why: UsageError(f"can't read the config of {folder}: {why}")):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=choice.trust_remote_code)
    said = folder / "generation_config.json"
    generation = GenerationConfig.from_pretrained(folder) if said.is_file() else None
    named: Any = SimpleNamespace(config=config, generation_config=generation)
    return OutsideModels(
        config=config,
        stop_ids=stop_token_ids(named),
        tokenizer=HubTokenizer.load(folder, trust_remote_code=choice.trust_remote_code),
        head=head,
    )
