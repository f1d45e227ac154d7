"""The worked tables of the three preallocation policies (vllm#16370 and its thread)."""

import pytest

from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.preallocation import Demand, page_need
from eaglebench.records.knobs import PREALLOCATIONS, Preallocation

PAGE_SIZE = 4

# new tokens N, preallocated pages P, then totals for L = 0 .. 8 under both policies
FRESH = [
    (1, 0, "1 1 1 1 2 2 2 2 3", "1 1 1 1 2 2 2 2 3"),
    (1, 1, "2 2 2 2 2 2 2 2 3", "2 2 2 2 2 2 2 2 3"),
    (1, 2, "3 3 3 3 3 3 3 3 3", "3 3 3 3 3 3 3 3 3"),
    (1, 3, "4 4 4 4 4 4 4 4 4", "4 4 4 4 4 4 4 4 4"),
    (3, 0, "1 1 2 2 2 2 3 3 3", "1 1 2 2 2 2 3 3 3"),
    (3, 1, "2 2 3 3 2 2 3 3 3", "2 2 2 2 2 2 3 3 3"),
    (3, 2, "3 3 4 4 3 3 4 4 3", "3 3 3 3 3 3 3 3 3"),
    (3, 3, "4 4 5 5 4 4 5 5 4", "4 4 4 4 4 4 4 4 4"),
    (4, 0, "1 2 2 2 2 3 3 3 3", "1 2 2 2 2 3 3 3 3"),
    (4, 1, "2 3 3 3 2 3 3 3 3", "2 2 2 2 2 3 3 3 3"),
    (4, 2, "3 4 4 4 3 4 4 4 3", "3 3 3 3 3 3 3 3 3"),
    (4, 3, "4 5 5 5 4 5 5 5 4", "4 4 4 4 4 4 4 4 4"),
    (5, 0, "2 2 2 2 3 3 3 3 4", "2 2 2 2 3 3 3 3 4"),
    (5, 1, "3 3 3 3 3 3 3 3 4", "3 3 3 3 3 3 3 3 4"),
    (5, 2, "4 4 4 4 4 4 4 4 4", "4 4 4 4 4 4 4 4 4"),
    (5, 3, "5 5 5 5 5 5 5 5 5", "5 5 5 5 5 5 5 5 5"),
]

# computed C, pages held, N, P, then none/lookahead-blocks/covered for L = 0, 1, 2, 4, 8
RUNNING = [
    (6, 2, 1, 1, "0/0/0 0/0/0 1/2/1 1/1/1 2/2/2"),
    (7, 2, 1, 1, "0/0/0 1/2/1 1/2/1 1/1/1 2/2/2"),
    (7, 2, 1, 2, "0/0/0 1/3/2 1/3/2 1/2/2 2/2/2"),
    (7, 2, 5, 1, "1/2/2 2/3/2 2/3/2 2/2/2 3/3/3"),
    (8, 2, 3, 1, "1/2/2 1/2/2 2/3/2 2/2/2 3/3/3"),
    (8, 2, 5, 2, "2/4/4 2/4/4 2/4/4 3/4/4 4/4/4"),
]


def total_pages(
    policy: Preallocation,
    demand: Demand,
    *,
    num_held: int = 0,
    num_preallocated_pages: int = 1,
) -> int:
    """Pages taken in all."""
    need = page_need(
        policy,
        demand,
        geometry=PageGeometry(PAGE_SIZE),
        num_held=num_held,
        preallocate_tokens=num_preallocated_pages * PAGE_SIZE,
    )
    return need.required + need.preallocated


def make_demand(computed: int, new: int, lookahead: int, max_slots: int | None = None) -> Demand:
    """A demand by position."""
    return Demand(num_computed=computed, num_new=new, num_lookahead=lookahead, max_slots=max_slots)


@pytest.mark.parametrize(("new", "aim", "lookahead_blocks", "covered"), FRESH)
def test_fresh_requests(new: int, aim: int, lookahead_blocks: str, covered: str) -> None:
    """Totals of a request that holds nothing, for 0 to 8 look-ahead slots."""
    demands = [make_demand(0, new, lookahead) for lookahead in range(9)]

    columns: list[tuple[Preallocation, str]] = [
        ("lookahead-blocks", lookahead_blocks),
        ("covered", covered),
    ]
    for policy, expected in columns:
        got = [total_pages(policy, each, num_preallocated_pages=aim) for each in demands]
        assert " ".join(map(str, got)) == expected


@pytest.mark.parametrize(("computed", "held", "new", "aim", "expected"), RUNNING)
def test_running_requests(computed: int, held: int, new: int, aim: int, expected: str) -> None:
    """New pages of a request that holds some already, under all three policies."""
    got = [
        "/".join(
            str(
                total_pages(
                    policy,
                    make_demand(computed, new, lookahead),
                    num_held=held,
                    num_preallocated_pages=aim,
                )
            )
            for policy in PREALLOCATIONS
        )
        for lookahead in (0, 1, 2, 4, 8)
    ]

    assert " ".join(got) == expected


@pytest.mark.parametrize(
    ("new", "lookahead", "aim", "expected"), [(3, 2, 0, 2), (3, 2, 1, 3), (3, 4, 1, 2)]
)
def test_original_cases(new: int, lookahead: int, aim: int, expected: int) -> None:
    """The three cases that vllm#16370 itself tests."""
    demand = make_demand(0, new, lookahead)

    assert total_pages("lookahead-blocks", demand, num_preallocated_pages=aim) == expected


@pytest.mark.parametrize("policy", PREALLOCATIONS)
def test_enough_is_enough(policy: Preallocation) -> None:
    """A request that holds what it needs gets nothing, however much could be preallocated."""
    demand = make_demand(3, 1, 4)

    assert total_pages(policy, demand, num_held=2, num_preallocated_pages=9) == 0


@pytest.mark.parametrize("policy", PREALLOCATIONS)
def test_nothing_is_taken_past_the_context_limit(policy: Preallocation) -> None:
    """Neither look-ahead nor preallocation reserves a page past the last allowed slot."""
    demand = make_demand(6, 3, 8, max_slots=10)

    assert total_pages(policy, demand, num_preallocated_pages=9) == 3


def test_covered_never_falls_with_more_lookahead() -> None:
    """The merged formula is a saw-tooth in L, the proposed one is not."""
    for new in range(1, 10):
        totals = [total_pages("covered", make_demand(0, new, ahead)) for ahead in range(20)]
        assert totals == sorted(totals)
