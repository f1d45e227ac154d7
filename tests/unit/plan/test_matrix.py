"""The matrix: which cells there are, and why others are not."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from eaglebench.errors import InputFileError, InvariantError, UsageError
from eaglebench.plan import matrix
from eaglebench.plan.axes import AXES
from eaglebench.plan.cell import cell_id
from eaglebench.plan.matrix import Expansion, Limits, MatrixSpec, expand
from eaglebench.plan.matrix_file import read_matrix_file
from eaglebench.records.draft_shape import draft_shape_problem, most_draft_tokens
from eaglebench.records.knobs import EngineKnobs


def make_expansion(
    *,
    is_speculative: bool = True,
    max_total_tokens: int = 1024,
    arms: tuple[str, ...] = (),
    **spec: Any,
) -> Expansion:
    """Expand a matrix in a small pool."""
    limits = Limits(
        max_total_tokens=max_total_tokens,
        context_length=None,
        is_speculative=is_speculative,
        arms=arms,
    )
    return expand(MatrixSpec(**spec), limits)


def ids(expansion: Expansion) -> list[str]:
    """Names of the cells."""
    return [cell.cell_id for cell in expansion.cells]


def test_no_axes_give_the_default_cell() -> None:
    """Without axes there is one cell, that of the first seed."""
    assert ids(make_expansion()) == ["page1-chunkoff-topk1-steps2-draft3"]


def test_axes_are_multiplied_in_a_stable_order() -> None:
    """Every combination appears once; the order does not depend on that of the axes."""
    one = make_expansion(axes={"page_size": (1, 16), "chunked_prefill_size": (-1, 64)})
    other = make_expansion(axes={"chunked_prefill_size": (-1, 64), "page_size": (1, 16)})

    assert ids(one) == ids(other)
    assert ids(one)[-1] == "page16-chunk64-topk1-steps2-draft3"
    assert len(one.cells) == 4


def test_rare_settings_appear_in_the_id_when_they_differ() -> None:
    """Parallel and preallocation are named only when they are not the default."""
    knobs = EngineKnobs(parallel=4, preallocation="covered", preallocate_tokens=32)

    assert cell_id(knobs) == "page1-chunkoff-topk1-steps2-draft3-parallel4-covered32"


def test_a_window_is_named_where_it_is_set() -> None:
    """0 is off; the model's own has no name."""
    cells = make_expansion(axes={"sliding_window": (0, 64)}, include=({},))

    plain = "page1-chunkoff-topk1-steps2-draft3"
    assert ids(cells) == [f"{plain}-windowoff", f"{plain}-window64", plain]


def test_equal_cells_are_run_once() -> None:
    """Values that make no difference make no second cell."""
    expansion = make_expansion(axes={"page_size": (4, 4), "preallocate_tokens": (16, 64)})

    assert len(expansion.cells) == 1


def test_two_points_of_one_name_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An axis that the name of a cell leaves out would have one of its points measured unseen."""
    monkeypatch.setattr(matrix, "cell_id", lambda knobs: f"page{knobs.page_size}")

    with pytest.raises(InvariantError, match=r"both called page4: parallel is 1 and 2;"):
        make_expansion(axes={"page_size": (4,), "parallel": (1, 2)})


def test_every_axis_tells_cells_apart() -> None:
    """Two values of any axis are two cells: none is forgotten in the names."""
    values: dict[str, tuple[int | str, ...]] = {
        name: axis.words[:2] for name, axis in AXES.items() if axis.least is None
    }
    beside: dict[str, dict[str, tuple[int | str, ...]]] = {
        "preallocate_tokens": {"preallocation": ("covered",)},
        "num_draft_tokens": {"num_steps": (2,), "eagle_topk": (2,)},
    }

    for axis in AXES:
        axes = beside.get(axis, {}) | {axis: values.get(axis, (2, 3))}
        assert len(make_expansion(axes=axes).cells) == 2, axis


def test_zipped_axes_move_together() -> None:
    """Two zipped axes of two values give two cells."""
    expansion = make_expansion(zip=({"page_size": (1, 16), "num_steps": (2, 4)},))

    assert ids(expansion) == [
        "page1-chunkoff-topk1-steps2-draft3",
        "page16-chunkoff-topk1-steps4-draft5",
    ]


def test_include_adds_and_exclude_drops() -> None:
    """Points are dropped when they agree in every value given; included ones stay."""
    expansion = make_expansion(
        axes={"page_size": (1, 16), "num_steps": (2, 3)},
        exclude=({"page_size": 16, "num_steps": 3},),
        include=({"page_size": 64},),
    )

    assert [cell.knobs.page_size for cell in expansion.cells] == [1, 1, 16, 64]


@pytest.mark.parametrize(
    ("num_steps", "eagle_topk", "most"), [(0, 1, 1), (1, 1, 2), (3, 1, 4), (1, 4, 5), (3, 4, 37)]
)
def test_bound_on_draft_tokens(num_steps: int, eagle_topk: int, most: int) -> None:
    """1 + topk + (steps - 1) * topk^2, the root included."""
    assert most_draft_tokens(num_steps, eagle_topk) == most


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((3, 1, 10), ["must be 4", "--num-steps 9"]),
        ((2, 1, 1), ["must be 3"]),
        ((0, 1, 3), ["must be 1"]),
        ((3, 4, 38), ["2 to 37"]),
        ((3, 4, 1), ["2 to 37"]),
    ],
)
def test_impossible_shapes_name_the_allowed_range(
    shape: tuple[int, int, int], words: list[str]
) -> None:
    """The message names what would work."""
    problem = draft_shape_problem(*shape)

    assert problem is not None
    assert all(word in problem for word in words)


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 1, 2), (2, 1, 3), (3, 4, 2), (3, 4, 37)])
def test_possible_shapes(shape: tuple[int, int, int]) -> None:
    """Chains and trees within the bound are fine."""
    assert draft_shape_problem(*shape) is None


def test_one_number_of_the_shape_is_enough() -> None:
    """The others follow: steps from draft tokens, draft tokens from steps."""
    assert ids(make_expansion(axes={"num_draft_tokens": (5,)}))[0].endswith("steps4-draft5")
    assert ids(make_expansion(axes={"num_steps": (5,)}))[0].endswith("steps5-draft6")


def test_num_speculative_tokens_is_a_chain() -> None:
    """K as in vLLM: K steps, top-k 1, K + 1 draft tokens."""
    assert ids(make_expansion(axes={"num_speculative_tokens": (3,)})) == [
        "page1-chunkoff-topk1-steps3-draft4"
    ]


def test_num_speculative_tokens_is_not_mixed() -> None:
    """Beside SGLang's numbers it is refused."""
    with pytest.raises(UsageError, match="--num-steps can't be given beside it"):
        make_expansion(axes={"num_speculative_tokens": (3,), "num_steps": (3,)})


def test_a_tree_holds_as_many_nodes_as_its_branches_at_every_step() -> None:
    """Where nothing is said; a chain holds one a step, and no tree more than it grows."""
    expansion = make_expansion(axes={"eagle_topk": (1, 4, 8), "num_steps": (1, 3)})

    shapes = {(c.knobs.eagle_topk, c.knobs.num_steps): c for c in expansion.cells}
    tokens = {shape: cell.knobs.num_draft_tokens for shape, cell in shapes.items()}
    assert tokens == {(1, 1): 2, (1, 3): 4, (4, 1): 5, (4, 3): 13, (8, 1): 9, (8, 3): 25}


def test_auto_draft_tokens_stand_beside_numbers() -> None:
    """`auto` is a value of the axis: SGLang's 16 nodes can be swept next to the usual number."""
    axes = {"num_steps": (3,), "eagle_topk": (1, 4), "num_draft_tokens": ("auto", 16)}

    expansion = make_expansion(axes=axes)

    assert [cell.knobs.num_draft_tokens for cell in expansion.cells] == [4, 13, 16]
    assert [cell.cell_id for cell in expansion.skipped] == ["page1-chunkoff-topk1-steps3-draft16"]


def test_trees_are_left_out_beside_a_fault_of_chains() -> None:
    """Known before a model is loaded; the chains of the matrix are run."""
    expansion = make_expansion(axes={"eagle_topk": (1, 4)}, arms=("radix", "kv-reuse"))

    assert ids(expansion) == ["page1-chunkoff-topk1-steps2-draft3"]
    assert "kv-reuse" in expansion.skipped[0].reason


def test_preallocation_is_an_axis() -> None:
    """All three policies, each a cell of its own."""
    policies = ("none", "lookahead-blocks", "covered")

    expansion = make_expansion(axes={"preallocation": policies})

    assert tuple(cell.knobs.preallocation for cell in expansion.cells) == policies


def test_cells_that_make_no_sense_are_skipped_with_the_reason() -> None:
    """The rest of the matrix runs."""
    expansion = make_expansion(
        axes={"page_size": (16, 64), "num_steps": (2, 3), "num_draft_tokens": (3,)},
        max_total_tokens=32,
    )

    assert ids(expansion) == ["page16-chunkoff-topk1-steps2-draft3"]
    assert len(expansion.skipped) == 3
    assert any("larger than the pool of 32" in cell.reason for cell in expansion.skipped)


def test_plain_decoding() -> None:
    """Steps 0, and algorithm NONE, leave only the root."""
    assert ids(make_expansion(axes={"num_steps": (0,)}))[0].endswith("steps0-draft1")
    assert ids(make_expansion(is_speculative=False))[0].endswith("steps0-draft1")
    with pytest.raises(UsageError, match="drafts nothing"):
        make_expansion(is_speculative=False, axes={"num_steps": (2,)})


@pytest.mark.parametrize(
    "axes",
    [
        {"page_size": (0,)},
        {"page_size": (-1,)},
        {"chunked_prefill_size": (0,)},
        {"sliding_window": (-1,)},
        {"num_steps": (-1,)},
        {"num_draft_tokens": (0,)},
        {"eagle_topk": (0,)},
        {"parallel": (0,)},
        {"parallel": ("many",)},
        {"preallocation": ("some",)},
        {"page_sizes": (1,)},
        {"page_size": ()},
    ],
)
def test_impossible_values_are_refused(axes: dict[str, tuple[int | str, ...]]) -> None:
    """Values that no cell can have are refused, and so are unknown axes."""
    with pytest.raises(ValidationError):
        MatrixSpec(axes=axes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.yaml", "axes:\n  page-size: [1, 16]\n  parallel: 2\n"),
        ("m.toml", "[axes]\npage_size = [1, 16]\nparallel = 2\n"),
        ("m.json", '{"axes": {"page_size": [1, 16], "parallel": [2]}}'),
    ],
)
def test_matrix_files_in_three_formats(tmp_path: Path, name: str, text: str) -> None:
    """YAML, TOML and JSON hold the same matrix."""
    path = tmp_path / name
    path.write_text(text)

    assert read_matrix_file(path).axes == {"page_size": (1, 16), "parallel": (2,)}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("m.yaml", "axes:\n  page_sise: [1]\n", "did you mean page_size"),
        ("m.yaml", "axis:\n  page_size: [1]\n", "did you mean axes"),
        ("m.yaml", "axes: [\n", "broken YAML"),
        ("m.json", "{", "broken JSON"),
        ("m.toml", "=", "broken"),
        ("m.yaml", "- 1\n", "keys and values"),
        ("m.yaml", "zip: {page_size: [1, 2], num_steps: [1]}\n", "equally many"),
    ],
)
def test_bad_matrix_files_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    """The message says what is wrong, with the nearest name for an unknown one."""
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(InputFileError, match=words):
        read_matrix_file(path)
