import pytest

from supremum.lattice import Counterexample, Lattice, counterexamples

DIAMOND = Lattice({"bottom": ["left", "right"], "left": ["top"], "right": ["top"]})
BUTTERFLY = Lattice({"a": ["x", "y"], "b": ["x", "y"]})


def test_join_returns_the_least_upper_bound():
    assert DIAMOND.join("left", "right") == "top"
    assert DIAMOND.join("bottom", "left") == "left"
    assert DIAMOND.join("left") == "left"
    assert DIAMOND.join("bottom", "left", "right") == "top"


def test_a_pair_with_two_minimal_upper_bounds_has_no_join():
    assert BUTTERFLY.join("a", "b") is None
    assert BUTTERFLY.minimal(BUTTERFLY.upper_bounds("a", "b")) == ("x", "y")


def test_a_pair_without_an_upper_bound_has_no_join():
    assert Lattice({"a": [], "b": []}).join("a", "b") is None


def test_path_returns_a_shortest_path():
    long_way = Lattice({"a": ["b", "d"], "b": ["c"], "c": ["d"]})
    assert long_way.path("a", "d") == ("a", "d")
    assert long_way.path("a", "a") == ("a",)
    assert long_way.path("d", "a") == ()


def test_a_cycle_raises_and_is_shown():
    with pytest.raises(ValueError, match="a -> b -> c -> a"):
        Lattice({"a": ["b"], "b": ["c"], "c": ["a"]})


def test_a_lattice_has_no_counterexamples():
    assert not list(counterexamples(DIAMOND.join, DIAMOND.nodes))


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ({"aa": "b"}, Counterexample("idempotent", ("a",), "a", "b")),
        ({"ab": "a", "ba": "b"}, Counterexample("commutative", ("a", "b"), "a", "b")),
        ({"ab": None, "ba": None, "bb": "b"}, Counterexample("associative", ("a", "b", "b"), None, None)),
    ],
)
def test_each_broken_law_is_found(table, found):
    answers = {"aa": "a", "ab": "b", "ba": "b", "bb": "b"} | table
    kinds = {c.law for c in counterexamples(lambda x, y: answers[x + y], ["a", "b"])}
    if found.left != found.right:
        assert found.law in kinds
    else:
        assert kinds == set()


def test_refusals_count_as_results_when_grouping():
    # p and q join in h, but q and h have no join: (p | q) | h has an answer, p | (q | h) has none.
    answers = {frozenset("pq"): "h", frozenset("ph"): "h"}

    def join(x, y):
        return x if x == y else answers.get(frozenset((x, y)))

    laws = [str(c) for c in counterexamples(join, ["p", "q", "h"])]
    assert "(p, q), h gives h, but p, (q, h) is refused" in laws
