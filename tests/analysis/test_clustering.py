"""The order of similar names."""

from hypothesis import given
from hypothesis import strategies as st

from supremum.analysis.distance import alike_together


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True))
def test_points_on_a_line_keep_their_order(points):
    found = [int(name) for name in alike_together([str(point) for point in points], lambda a, b: abs(int(a) - int(b)))]
    assert found in (sorted(points), sorted(points, reverse=True))


def test_the_distance_of_groups_is_the_mean_distance_of_their_members():
    # c is 5 from a and 7 from b, 6 on average, and 5.5 from d. With the smallest distance, c would join a and b first;
    # with the largest, it would come last.
    far = {"ab": 1.0, "ac": 5.0, "bc": 7.0, "cd": 5.5, "ad": 20.0, "bd": 20.0}
    asked = []

    def distance(a, b):
        asked.append({a, b})
        return far["".join(sorted((a, b)))]

    assert alike_together("abcd", distance) == ("b", "a", "c", "d")
    assert {"a"} not in asked
