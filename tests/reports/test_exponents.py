"""Histograms of exponents: the axis, the bars and the ranges of formats, as HTML and SVG."""

import re
import xml.etree.ElementTree as ET

from supremum.reports import ExponentAxis, Exponents, Span, axis_of, exponents_picture, exponents_to_html
from supremum.reports.exponents import _strip, describe, power

F16 = Span("f16", -24, -14, 15, "3% inf")
WIDE = Span("bf16", -133, -126, 127)
COUNTS = Exponents({-30: 2, 0: 1024, 15: 8, 16: 1, 17: 4}, (F16, WIDE))


def test_the_axis_has_all_values_and_the_ranges_that_are_not_wide():
    assert axis_of([COUNTS]) == ExponentAxis(-32, 19)
    assert axis_of([Exponents({}, (F16,))]) == ExponentAxis(-26, 17)
    assert axis_of([Exponents({-140: 1}, (WIDE,))]) == ExponentAxis(-142, -138)
    assert axis_of([]) == ExponentAxis(-10, 10)
    assert ExponentAxis(-32, 19).ticks == (-32, -16, 0, 16)


def test_a_strip_has_the_range_and_the_values_outside_of_it():
    axis = ExponentAxis(-32, 19)
    assert _strip(COUNTS, F16, axis) == [
        ("subnormal", -24, -14), ("normal", -14, 16), ("lost", -30, -29), ("overflow", 16, 18)
    ]  # fmt: skip
    assert _strip(COUNTS, WIDE, axis) == [("normal", -32, 20)]


def test_bars_are_logarithms_of_counts():
    drawn = exponents_to_html(COUNTS, axis_of([COUNTS]))
    heights = [float(each) for each in re.findall(r"v-([\d.]+)h", drawn)]
    assert heights == [round(40 * (1 + bits) / 11, 2) for bits in (1, 10, 3, 0, 2)]
    assert "f16 3% inf" in drawn


def test_names_are_escaped_and_the_picture_is_well_formed():
    evil = Exponents({0: 1}, (Span("<b>", -3, -2, 2, "a & b"),))
    assert "<b><b>" not in exponents_to_html(evil, axis_of([evil])).replace("&lt;b&gt;", "")
    assert ET.fromstring(exponents_picture("x < y", ["a & b"], [("m.py:1", "x < 2", evil)])) is not None
    assert ET.fromstring(exponents_picture("nothing", [], [])) is not None


def test_what_screen_readers_say():
    assert describe(COUNTS) == "exponents from 2⁻³⁰ to 2¹⁷; f16 3% inf"
    assert describe(Exponents({})) == "no values other than zero"
    assert power(128) == "2¹²⁸"
