"""The tensors behind the slots."""

import numpy as np
import pytest
import torch

from eaglebench.errors import UsageError
from eaglebench.kv.pool import HybridPool, KVPool

HEADS, HEAD_DIM, SLOTS = 3, 8, 12


def make_pool(fill: float = 0.0) -> KVPool:
    """Two layers on the CPU."""
    return KVPool(
        num_layers=2,
        num_slots=SLOTS,
        num_kv_heads=HEADS,
        head_dim=HEAD_DIM,
        dtype=torch.float32,
        device=torch.device("cpu"),
        fill=fill,
    )


def test_a_pool_that_no_memory_holds_is_refused_with_its_size() -> None:
    """The number of slots is the user's; the message says what it would take."""
    with pytest.raises(UsageError, match=r"takes 7680000000\.0 GB") as caught:
        KVPool(
            num_layers=2,
            num_slots=10**16,
            num_kv_heads=HEADS,
            head_dim=HEAD_DIM * 2,
            dtype=torch.float32,
            device=torch.device("cpu"),
        )
    assert "--max-total-tokens" in str(caught.value.hint)


def random_kv(num_tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V of some tokens."""
    generator = torch.Generator().manual_seed(0)
    shape = (num_tokens, HEADS, HEAD_DIM)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def test_what_is_written_is_gathered() -> None:
    """Slots in any order, one layer at a time."""
    pool = make_pool()
    slots = torch.tensor([7, 2, 9])
    key, value = random_kv(3)
    pool.write(1, slots, key, value)
    got_key, got_value = pool.gather(1, slots)

    assert torch.equal(got_key, key.transpose(0, 1))
    assert torch.equal(got_value, value.transpose(0, 1))
    assert not pool.gather(0, slots)[0].any()


def test_a_slice_is_a_view_of_a_run() -> None:
    """The same numbers as a gather, without a copy."""
    pool = make_pool()
    key, value = random_kv(4)
    pool.write(0, torch.arange(3, 7), key, value)
    view, _ = pool.slice(0, 3, 7)

    assert torch.equal(view, pool.gather(0, torch.arange(3, 7))[0])
    assert view.untyped_storage().data_ptr() == pool.keys[0].untyped_storage().data_ptr()


def test_tokens_move_in_every_layer() -> None:
    """Sources and targets may overlap; what was read is what stood there before."""
    pool = make_pool()
    key, value = random_kv(3)
    for layer in range(pool.num_layers):
        pool.write(layer, torch.tensor([4, 5, 6]), key, value)
    pool.move_tokens(np.array([5, 6]), np.array([4, 5]), lambda slots: slots)

    for layer in range(pool.num_layers):
        moved, _ = pool.gather(layer, torch.tensor([4, 5, 6]))
        assert torch.equal(moved, key.transpose(0, 1)[:, [1, 2, 2]])


def test_tokens_move_in_both_pools() -> None:
    """Window layers keep the same tokens in slots of their own."""
    pool = HybridPool(make_pool(), make_pool(), (False, True))
    key, value = random_kv(1)
    pool.full.write(0, torch.tensor([7]), key, value)
    pool.window.write(0, torch.tensor([2]), key, value)
    pool.move_tokens(np.array([7]), np.array([8]), lambda slots: slots - 5)

    assert torch.equal(pool.full.gather(0, torch.tensor([8]))[0], key.transpose(0, 1))
    assert torch.equal(pool.window.gather(0, torch.tensor([3]))[0], key.transpose(0, 1))
    assert not pool.window.gather(0, torch.tensor([8]))[0].any()


@pytest.mark.parametrize("slot", [-1, SLOTS])
def test_slots_outside_the_pool_raise(slot: int) -> None:
    """A slot of -1 never means the last slot, neither for writing nor for reading."""
    pool = make_pool()
    key, value = random_kv(2)
    slots = torch.tensor([3, slot])

    with pytest.raises(IndexError):
        pool.write(0, slots, key, value)
    with pytest.raises((IndexError, RuntimeError)):
        pool.gather(0, slots)


def test_a_nan_filled_pool_has_a_finite_dummy_slot() -> None:
    """Padding reads slot 0; every other slot betrays a read before a write."""
    pool = make_pool(fill=float("nan"))
    key, _ = pool.slice(0, 0, SLOTS)

    assert not key[:, 0].isnan().any()
    assert key[:, 1:].isnan().all()


def test_memory_is_counted() -> None:
    """K and V of both layers."""
    assert make_pool().num_bytes == 2 * 2 * HEADS * SLOTS * HEAD_DIM * 4
