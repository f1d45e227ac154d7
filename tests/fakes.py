"""A runtime without a model: tokens come from a hash, so everything above the seam can be tested.

The toy target's choice after a prefix is a hash of the prefix; the toy draft guesses it right four
times in five. Arms in `plants` guess wrong where a question mentions the plant's word, which is
how a fault or a near-tie is put where a test expects it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from eaglebench.bench.estimate import ByteTokenizer as PlainByteTokenizer
from eaglebench.records.counters import Counters
from eaglebench.records.generation import FinishReason, GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.models import NumericNoise, RuntimeInfo
from eaglebench.records.observation import (
    RequestObservation,
    RequestTimes,
    StepTimes,
    VerifyStep,
)
from eaglebench.records.tokenizer import Tokenizer
from tests.toy_pools import NO_PRESSURE, Pressure, ScriptedRoom

LETTERS = b"abcdefghijklmnopqrstuvwxyz "
STOP_TOKEN = 0
CLEAR_GAP = 1.0
NOISE = 1e-4
STEP_S = 0.01
_GUESS_BASE = 10
_GUESS_RIGHT = 8


class ByteTokenizer(PlainByteTokenizer):
    """One token a byte; a chat is its contents between tags."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """The bytes as text, without the stop token."""
        return bytes(token_id for token_id in token_ids if token_id).decode(errors="replace")

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """`<role>content` for each message, then the assistant's tag."""
        text = "".join(f"<{message['role']}>{message['content']}" for message in messages)
        return self.encode(text + "<assistant>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A difference put into one arm, in answers to prompts that hold `word`.

    Attributes:
        word: which prompts.
        side: whose choice differs; or `capacity` or `failed`, which ends the answer so,
            or `idle`: every guess is wrong.
        gap: top-2 gap of that choice in both arms.
        output_index: the first choice at or after this output position differs.
    """

    word: str
    side: str = "draft"
    gap: float = CLEAR_GAP
    output_index: int = 6


@dataclass(slots=True)
class _Running:
    request: GenerationRequest
    known: list[int]
    cached: int
    replay: Sequence[int] | None
    steps: list[VerifyStep]
    has_sampled: bool = False
    reason: FinishReason | None = None
    pressure: Pressure = NO_PRESSURE

    @property
    def outputs(self) -> list[int]:
        return self.known[len(self.request.prompt_token_ids) :]


class ScriptedBackend:
    """One arm of the toy."""

    def __init__(
        self,
        knobs: EngineKnobs,
        plants: Sequence[tuple[Plant, bool]],
        pressures: Sequence[Pressure] = (),
    ) -> None:
        self.knobs = knobs
        self.plants = plants
        self.pressures = pressures
        self.is_closed = False
        self.num_resets = 0
        self.served: list[str] = []
        self._tree: list[tuple[int, ...]] = []
        self._steps = {"prefill": 0, "decode": 0, "rows": 0}

    def generate(
        self,
        requests: Iterable[GenerationRequest | None],
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> Iterator[RequestObservation]:
        """Run requests, `parallel` at a time, one verify step each in turn."""
        running: list[_Running] = []
        source, is_open = iter(requests), True
        while is_open or running:
            while is_open and len(running) < self.knobs.parallel:
                try:
                    request = next(source)
                except StopIteration:
                    is_open = False
                    break
                if request is None:
                    assert running, "a request waits for another one, but none is running"
                    break
                if len(request.prompt_token_ids) >= self.knobs.max_total_tokens:
                    yield _refused(request)
                else:
                    running.append(self._start(request, (replay or {}).get(request.request_id)))
            self._count(running)
            for row in list(running):
                self._step(row)
                if row.reason is not None:
                    running.remove(row)
                    self._tree.append(tuple(row.known[:-1]))
                    yield self._observe(row)

    def _count(self, running: Sequence[_Running]) -> None:
        """Book a step over all rows; one that samples a first token is a prefill."""
        if running:
            self._steps["prefill" if any(not row.has_sampled for row in running) else "decode"] += 1
            self._steps["rows"] += len(running)

    def take_step_times(self) -> StepTimes:
        """A hundredth of a second for each step since the last call."""
        steps, self._steps = self._steps, {"prefill": 0, "decode": 0, "rows": 0}
        return StepTimes(
            prefill_s=steps["prefill"] * STEP_S,
            mixed_s=0.0,
            decode_s=steps["decode"] * STEP_S,
            prefill_steps=steps["prefill"],
            mixed_steps=0,
            decode_steps=steps["decode"],
            running_rows=steps["rows"],
        )

    def reset(self) -> None:
        """Forget everything."""
        self.num_resets += 1
        self._tree = []
        self.take_step_times()

    def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True

    def _start(self, request: GenerationRequest, replay: Sequence[int] | None) -> _Running:
        self.served.append(request.request_id)
        prompt = request.prompt_token_ids
        cached = 0
        if self.knobs.arm not in {"no-cache", "force-miss"}:
            cached = max((_shared(prompt, known) for known in self._tree), default=0)
            cached = min(cached, len(prompt) - 1) // self.knobs.page_size * self.knobs.page_size
        mine = [t for t in self.pressures if t.word.encode() in bytes(prompt)]
        running = _Running(request, list(prompt), cached, replay, [])
        running.pressure = mine[0] if mine else running.pressure
        return running

    def _step(self, row: _Running) -> None:
        if not row.has_sampled:
            row.has_sampled = True
            self._deliver(row, [self._choose(row, row.known)[0]])
            return
        drafted: list[int] = []
        target: list[int] = []
        draft_gaps: list[float] = []
        target_gaps: list[float] = []
        is_silent = len(row.steps) < row.pressure.silent_steps
        for _ in range(0 if is_silent else self.knobs.num_draft_nodes):
            token_id, gap = self._guess(row, [*row.known, *drafted])
            drafted.append(token_id)
            draft_gaps.append(gap)
        for node in range(len(drafted) + 1):
            token_id, gap = self._choose(row, [*row.known, *drafted[:node]])
            target.append(token_id)
            target_gaps.append(gap)
        accepted = next((n for n, t in enumerate(drafted) if t != target[n]), len(drafted))
        position = len(row.known) - 1
        emitted = self._deliver(row, target[: accepted + 1])
        row.steps.append(
            VerifyStep(
                position=position,
                drafted_ids=tuple(drafted),
                target_ids=tuple(target),
                accepted=accepted,
                emitted=emitted,
                target_gaps=tuple(target_gaps),
                draft_gaps=tuple(draft_gaps),
            )
        )

    def _deliver(self, row: _Running, token_ids: Sequence[int]) -> int:
        limit = row.request.max_new_tokens
        if row.replay is not None:
            limit = min(limit, len(row.replay))
        for number, token_id in enumerate(token_ids, start=1):
            row.known.append(token_id)
            if token_id in row.request.stop_token_ids:
                row.reason = "stop"
            elif len(row.outputs) >= limit:
                row.reason = "length"
            else:
                row.reason = self._broken_off(row)
            if row.reason is not None:
                return number
        return len(token_ids)

    def _broken_off(self, row: _Running) -> FinishReason | None:
        """How a plant of this arm ends the answer here."""
        prompt = bytes(row.request.prompt_token_ids)
        for plant, is_mine in self.plants:
            is_due = len(row.outputs) >= plant.output_index and plant.word.encode() in prompt
            if is_mine and is_due and plant.side in {"capacity", "failed"}:
                return "capacity" if plant.side == "capacity" else "failed"
        return None

    def _choose(self, row: _Running, prefix: Sequence[int]) -> tuple[int, float]:
        """The target's choice after a prefix, and its gap."""
        index = len(prefix) - len(row.request.prompt_token_ids)
        if row.replay is not None and index < len(row.replay):
            return row.replay[index], CLEAR_GAP
        return self._planted(row, index, _letter(prefix), "target")

    def _guess(self, row: _Running, prefix: Sequence[int]) -> tuple[int, float]:
        """The draft's choice after a prefix, and its gap."""
        index = len(prefix) - len(row.request.prompt_token_ids)
        replay = row.replay or ()
        choice = replay[index] if index < len(replay) else _letter(prefix)
        if crc32(bytes(prefix), 1) % _GUESS_BASE >= _GUESS_RIGHT:
            choice = ord("#")
        if self._is_idle(row):
            choice = ord("#")
        return self._planted(row, index, choice, "draft")

    def _is_idle(self, row: _Running) -> bool:
        prompt = bytes(row.request.prompt_token_ids)
        return any(
            p.side == "idle" and mine and p.word.encode() in prompt for p, mine in self.plants
        )

    def _planted(self, row: _Running, index: int, choice: int, side: str) -> tuple[int, float]:
        prompt = bytes(row.request.prompt_token_ids)
        for plant, is_mine in self.plants:
            if (plant.side, plant.output_index) == (side, index) and plant.word.encode() in prompt:
                return (ord("?") if is_mine else choice), plant.gap
        return choice, CLEAR_GAP

    def _observe(self, row: _Running) -> RequestObservation:
        accepted = tuple(step.accepted for step in row.steps)
        emitted = sum(step.emitted for step in row.steps)
        prompt_tokens = len(row.request.prompt_token_ids)
        counters = Counters(
            prompt_tokens=prompt_tokens,
            cached_tokens=row.cached,
            prefill_tokens_computed=prompt_tokens - row.cached,
            output_tokens=len(row.outputs),
            prefill_sampled=1,
            verify_steps=len(row.steps),
            num_drafts=sum(bool(step.drafted_ids) for step in row.steps),
            drafted=sum(len(step.drafted_ids) for step in row.steps),
            accepted=sum(accepted),
            bonus=len(row.steps),
            overrun=sum(accepted) + len(row.steps) - emitted,
            draft_forwards=len(row.steps) * self.knobs.num_steps,
            target_forwards=len(row.steps) + 1,
            pages_allocated=1,
            pages_returned=0,
            alloc_calls=1,
            evictions=row.pressure.evictions,
            preemptions=row.pressure.preemptions,
            resumed_tokens=row.pressure.resumed_tokens,
        )
        seconds = STEP_S * (len(row.steps) + 1)
        assert row.reason is not None
        return RequestObservation(
            request_id=row.request.request_id,
            output_token_ids=tuple(row.outputs),
            accepted_per_step=accepted,
            steps=tuple(row.steps),
            counters=counters,
            times=RequestTimes(
                queue_s=0.0, prefill_s=STEP_S, decode_s=seconds - STEP_S, total_s=seconds
            ),
            finish_reason=row.reason,
            error="the target gave NaN" if row.reason == "failed" else None,
            prefill_gap=CLEAR_GAP,
        )


class ScriptedRuntime:
    """Makes scripted backends and keeps them for inspection."""

    def __init__(
        self,
        plants: Mapping[str, Sequence[Plant]] | None = None,
        pressures: Sequence[Pressure] = (),
    ) -> None:
        self.plants = dict(plants or {})
        self.pressures = pressures
        self.tokenizer: Tokenizer = ByteTokenizer()
        self.backends: list[ScriptedBackend] = []
        self.noise_prompts: list[list[Sequence[int]]] = []
        self.is_closed = False
        self.info = RuntimeInfo(
            backend="scripted",
            target_id="toy",
            target_sha256="0" * 64,
            draft_id="toy-head",
            draft_sha256="1" * 64,
            tokenizer_sha256="2" * 64,
            dtype="float32",
            device="cpu",
            attention_backend="none",
            vocab_size=256,
            draft_vocab_size=256,
            context_length=4096,
            stop_token_ids=(STOP_TOKEN,),
            aux_layer_ids=(),
            warnings=(),
            weights_bytes=0,
            kv_bytes_per_slot=0,
        )

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend; it knows every plant, and makes its own arm's."""
        plants = [(p, arm == knobs.arm) for arm, own in self.plants.items() for p in own]
        made = ScriptedBackend(knobs, plants, self.pressures)
        self.backends.append(made)
        return made

    def prompt_room(self, knobs: EngineKnobs) -> ScriptedRoom:
        """What the backend would take."""
        return ScriptedRoom(knobs.max_total_tokens)

    def measure_noise(self, prompts: Sequence[Sequence[int]]) -> NumericNoise:
        """A fixed noise; remembers what it was asked about."""
        self.noise_prompts.append([*prompts])
        return NumericNoise(target=NOISE, draft=NOISE, target_lead=NOISE, draft_lead=NOISE)

    def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True


def _letter(prefix: Sequence[int]) -> int:
    return LETTERS[crc32(bytes(prefix)) % len(LETTERS)]


def _shared(left: Sequence[int], right: Sequence[int]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def _refused(request: GenerationRequest) -> RequestObservation:
    names = Counters.names()
    counters = dict.fromkeys(names, 0) | {
        "turns": 1,
        "prompt_tokens": len(request.prompt_token_ids),
    }
    return RequestObservation(
        request_id=request.request_id,
        output_token_ids=(),
        accepted_per_step=(),
        steps=(),
        counters=Counters(**counters),
        times=RequestTimes(queue_s=0.0, prefill_s=0.0, decode_s=0.0, total_s=0.0),
        finish_reason="failed",
        error="the prompt does not fit the pool",
    )
