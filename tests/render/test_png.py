"""PNGs of our pictures."""

import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from supremum.render import Cell, Mark, Table, hasse_to_svg, table_to_svg
from supremum.render.hasse import HEIGHT, Diagram, Node, laid_out
from supremum.render.png import to_png
from supremum.render.svg import LIGHT, PALETTE

TWO = Diagram(
    "two",
    (Node("int8", "integer", lit=True), Node("float*", "float", dashed=True)),
    (("int8", "float*"),),
    frozenset({("int8", "float*")}),
)


def _pixels(svg):
    return imread(io.BytesIO(to_png(svg)))[:, :, :3]


def _rgb(colour):
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def _share(pixels, colour):
    return np.mean(np.abs(pixels - _rgb(colour)).max(-1) < 0.01)


def test_a_png_has_two_dots_per_pixel_and_light_colours():
    svg = hasse_to_svg(TWO)
    width, height = (float(svg.split(f' {name}="')[1].split('"')[0]) for name in ("width", "height"))
    pixels = _pixels(svg)
    assert pixels.shape[:2] == (pytest.approx(2 * height, abs=2), pytest.approx(2 * width, abs=2))
    assert _share(pixels, LIGHT["page"]) > 0.7
    for colour in (PALETTE["integer"][0], PALETTE["float"][0], LIGHT["lit"], LIGHT["text"]):
        assert _share(pixels, colour) > 0.0005
    assert _share(pixels, PALETTE["complex"][0]) == _share(pixels, PALETTE["refused"][0]) == 0


def test_boxes_have_the_positions_of_the_svg():
    svg, layout = hasse_to_svg(TWO), laid_out(TWO)
    moves = re.findall(r"translate\((\S+) (\S+)\)", svg)[-2:]  # the drawing in the content in the picture
    left, top = (sum(map(float, each)) for each in zip(*moves, strict=True))
    pixels = _pixels(svg)
    for name, style in (("int8", "integer"), ("float*", "float")):
        box = layout.boxes[name]
        x, y = (2 * (each + 4) for each in (left + box.x, top + box.y))
        assert np.allclose(pixels[int(y), int(x)], _rgb(PALETTE[style][0]), atol=0.01), name
        below = pixels[int(2 * (top + box.y + HEIGHT + 4)), int(x)]
        assert np.allclose(below, _rgb(LIGHT["page"]), atol=0.01)


def test_a_table_is_drawn_with_its_marks():
    cells = (Cell(r"$\frac$", "integer"), Cell("-", "refused"))
    plain = Table("t", ("a", "b"), (("r", cells),))
    marked = Table("t", ("a", "b"), (("r", (cells[0], Cell("-", "refused", mark=Mark("odd", "!", "odd")))),))
    one, other = (_pixels(table_to_svg(table)) for table in (plain, marked))
    for pixels, outline in ((one, "line"), (other, "text")):
        rows, columns = np.nonzero(np.abs(pixels - _rgb(PALETTE["refused"][0])).max(-1) < 0.01)
        above_the_cell = pixels[rows.min() - 4 : rows.min(), columns.min() + 5 : columns.max() - 5]
        nearest = np.abs(above_the_cell - _rgb(LIGHT[outline])).max(-1).min(0)
        assert np.all(nearest < 0.01), outline


def test_pngs_are_deterministic():
    svg = hasse_to_svg(TWO)
    assert to_png(svg) == to_png(svg)
