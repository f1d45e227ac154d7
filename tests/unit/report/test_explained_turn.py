"""Steps beside steps: marks that need no colour, trees as trees, one way of counting."""

from collections.abc import Sequence

from eaglebench.report.explained_turn import ExplainedTurn, PartedStep, explanation, steps_table
from eaglebench.stats.pairing import pair_turns
from eaglebench.stats.tau import Tau
from tests.turns import make_step, make_turn

TREE = make_step(10, (1, 2, 3, 4), (2, 9, 4, 9, 7), 2, parents=(-1, -1, 1, 1))
"""The root's choice is 2 (node 1), its own is 4 (node 3), and behind that stands 7."""


def numbers(token_ids: Sequence[int]) -> str:
    """Token ids as they are."""
    return " ".join(map(str, token_ids))


def test_a_tree_is_drawn_as_one() -> None:
    """Children stand below their parent; `+` marks the accepted walk; the bonus is the last's."""
    turn = make_turn(TREE)
    found = ExplainedTurn(
        mine=turn, other=None, labels=("radix", "no-cache"), pair=None, tau=Tau(target=0, draft=0)
    )

    row = steps_table(found, numbers).texts[0]

    assert row == ["10", "0", "1\n2+\n  `-3\n  `-4+\n| 7", "2/4"]


def test_text_and_table_count_alike() -> None:
    """Step and root stand in the sentence as in the table, and the row is marked by a sign."""
    mine = make_turn(make_step(10, (1, 2), (1, 2, 3), 2), make_step(13, (4, 5), (4, 6, 7), 1))
    other = make_turn(make_step(10, (1, 2), (1, 2, 3), 2), make_step(13, (4, 6), (4, 6, 8), 2))
    tau = Tau(target=0.0, draft=0.0)
    (pair,) = pair_turns([mine], [other], tau)
    found = ExplainedTurn(
        mine=mine,
        other=other,
        labels=("radix", "no-cache"),
        pair=pair,
        tau=tau,
        parted=PartedStep("draft", 1, 13, 15),
    )

    table = steps_table(found, numbers)

    assert [column.heading for column in table.columns][:4] == ["root", "step", "radix", "acc."]
    assert table.texts[0][:3] == ["10", "0", "1+ 2+ | 3"]
    assert table.texts[1][:3] == ["> 13", "1", "4+ 5 | 6"]
    assert "at step 1 (root 13), position 15" in explanation(found)
    assert "'x'+ = drafted and accepted" in table.remarks[0]
