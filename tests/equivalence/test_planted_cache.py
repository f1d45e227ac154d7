"""A cache policy is a class that keeps the contract and a line that names it: nothing else."""

import pytest

from eaglebench.errors import UsageError
from eaglebench.kv.cache import PrefixCache
from eaglebench.records.knobs import CACHE_ARMS
from tests.engines import make_engine, make_knobs, run_all
from tests.equivalence.test_cache_arms import make_requests
from tests.planted_cache import DictionaryCache


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is registered, as a new one would be."""
    monkeypatch.setitem(CACHE_ARMS, "planted", "tests.planted_cache:DictionaryCache")


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("max_total_tokens", [256, 2048])
@pytest.mark.parametrize("page_size", [1, 4])
def test_a_planted_policy_is_lossless_and_neutral(
    page_size: int, max_total_tokens: int, parallel: int
) -> None:
    """It hits, it evicts where the pool is small, and answers and acceptance are as without it."""
    observed = {
        arm: run_all(
            make_engine(
                make_knobs(
                    arm,
                    page_size=page_size,
                    parallel=parallel,
                    max_total_tokens=max_total_tokens,
                    chunked_prefill_size=16,
                )
            ),
            make_requests(),
        )
        for arm in ("planted", "no-cache")
    }

    for told in ("output_token_ids", "accepted_per_step"):
        assert {n: getattr(o, told) for n, o in observed["planted"].items()} == {
            n: getattr(o, told) for n, o in observed["no-cache"].items()
        }
    counters = [o.counters for o in observed["planted"].values()]
    assert sum(c.cached_tokens or 0 for c in counters) > 0
    assert (sum(c.evictions or 0 for c in counters) > 0) == (max_total_tokens == 256)


def test_the_engine_has_the_planted_policy_and_no_other() -> None:
    """The arm's name finds the class; an unknown one is refused with those there are."""
    cache: PrefixCache = make_engine(make_knobs("planted")).storage.cache

    assert isinstance(cache, DictionaryCache)
    with pytest.raises(UsageError, match="expected one of radix, force-miss, no-cache, planted"):
        make_engine(make_knobs("unplanted"))
