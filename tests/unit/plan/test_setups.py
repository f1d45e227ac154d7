"""Several heads, targets, temperatures: which runs come of them."""

import pytest

from eaglebench.errors import UsageError
from eaglebench.plan.setups import refuse_several, split_setups


def values(**given: object) -> list[dict[str, object]]:
    """What varies, run by run."""
    return [dict(choice.values) for choice in split_setups(given)]


def test_one_of_each_is_one_run() -> None:
    """Lists of other options are no setups: they make a matrix inside it."""
    (only,) = split_setups({"draft_model": "a", "page_size": (1, 16)})

    assert only.values == {}
    assert only.given == {"draft_model": "a", "page_size": (1, 16)}
    assert only.name == ""


def test_every_combination_is_a_run() -> None:
    """The first option is the slowest, and each run has one value of each."""
    found = split_setups({"temperature": (0.0, 0.7), "draft_model": ("a", "b"), "seed": 3})

    assert [choice.name for choice in found] == [
        "--draft-model a, --temperature 0",
        "--draft-model a, --temperature 0.7",
        "--draft-model b, --temperature 0",
        "--draft-model b, --temperature 0.7",
    ]
    assert found[3].given == {"temperature": 0.7, "draft_model": "b", "seed": 3}


def test_a_head_belongs_to_its_target() -> None:
    """Both lists go in pairs; other numbers of them are refused, one head for all targets is not."""
    assert values(model=("t", "u"), draft_model=("a", "b")) == [
        {"model": "t", "draft_model": "a"},
        {"model": "u", "draft_model": "b"},
    ]
    assert values(model=("t", "u"), draft_model="a") == [{"model": "t"}, {"model": "u"}]
    with pytest.raises(UsageError, match="3 of --model and 2 of --draft-model"):
        split_setups({"model": ("t", "u", "v"), "draft_model": ("a", "b")})


def test_one_run_has_one_of_each() -> None:
    """Where there is one run, several values are refused by name."""
    with pytest.raises(UsageError, match="--temperature has 2 values"):
        refuse_several({"temperature": (0.0, 1.0), "page_size": (1, 2)})
