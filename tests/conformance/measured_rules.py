"""The oracle of every rule set whose framework was measured: a row per rule set."""

import itertools

from conformance.measured import NUMBERS, Oracle, document
from supremum.data_frames import NULLABLE_NAME_OF
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.operations import REDUCTIONS

PAGE = document("paddle-type-promotion-md")
_TF_FORMS = {"operator": 9036, "function": 15898, "numpy": 1230}
_TF_SKIPPED = {"operator": 4, "function": 30, "numpy": 10}
_PANDAS = {"version": "3.1.1", "numpy": "2.4.6"}
_NONE = {"function": 0, "operator": 0}


class Paddle(Oracle):
    """Paddle's calls in eager mode and, where they differ, in static programs, and the page "Paddle type promotion"."""

    def written(self, decision, cell=""):
        """The dtype of an accepted decision; for a cell in parentheses, a missing kernel, that of the computation."""
        return str(decision.casts[0].target) if cell.startswith("(") else super().written(decision)

    def _theirs(self, cell):
        return super()._theirs(cell if cell in self.document["refusals"] else cell.strip("()"))

    def cells(self):
        """List the cells of all three."""
        yield from super().cells()
        for form, tables in self.document["differing"].items():
            for operations, rows in tables.items():
                for operation, (row, differing) in itertools.product(operations.split(), rows.items()):
                    for column, cell in (pair.split("=") for pair in differing.split()):
                        yield (operation, form, row, column), cell
        code_of = {name: code for code, name in self.codes.items()}
        for operation, rules in PAGE["functions"].items():
            for rule, form in zip(rules, ("tensors", "scalars"), strict=True):
                for left, row in PAGE[form].items():
                    for right, cell in row.items():
                        name = _of_page(rule, cell)
                        yield (operation, f"page {form}", left, right), code_of.get(name, name)


def _of_page(rule, cell):
    """Apply the rule that the page's list of functions names to a cell of the page's tables."""
    if "-" in (rule, cell):
        return "-"
    category = as_format(cell).category
    if rule == "Logic":
        return "-" if category == "complex" else "bool"
    return "float32" if rule == "Divide" and category in ("bool", "integer") else cell


class Polars(Oracle):
    """Polars' functions, of which `clip` has one measured bound."""

    def ours(self, operation, *codes, cell=""):
        """What our rules decide, with both bounds of `clip`."""
        return super().ours(operation, *codes, *(codes[1:] if operation == "clip" else ()), cell=cell)


class Tinygrad(Oracle):
    """tinygrad's tensors, of which weak ones count like Python numbers in departures."""

    def label(self, code):
        """The name of an operand in departures."""
        return self.operand(code).name if self.full(code).endswith("*") else self.full(code)


class MixedColumns(Oracle):
    """Nullable columns of pandas next to columns with NumPy's dtypes, whose names begin with small letters."""

    def operand(self, code):
        """The operand that a code stands for."""
        return as_operand(self.codes[code])

    def label(self, code):
        """The name of an operand in departures, without its being nullable."""
        return self.document["formats"].get(code, self.codes[code])

    def written(self, decision, cell=""):
        """The name in pandas of the dtype of an accepted decision."""
        name = str(decision.dtype)
        return NULLABLE_NAME_OF[name] if decision.result.nullable else name

    def cells(self):
        """List ((operation, form, left, right), cell)."""
        for (operation, form, *codes), cell in super().cells():
            yield (operation, f"mixed {form}", *codes), cell


ORACLES_OF_RULES = [
    Oracle(
        rules="keras",
        facts={"version": "3.15.1", "backend": "jax", "floatx": "float32"},
        forms={"function": 441, "symbolic": 13379, "eager": 4017},
        # JAX lacks some kernels, such as negative for bool and floor for complex.
        skipped={"eager": 161},
        kernels=("no-kernel",),
        triples={"result_type": 21**3},
        valued=1944,
    ),
    Oracle(
        rules="mlx",
        facts={"version": "0.32.4", "zero_d": _NONE},  # arrays without dimensions count like all others
        forms={"function": 10404, "operator": 5600},
        others="result_type diff",
        triples={"result_type": 2744, "concat": 2744, "stack": 2744, "clip": 4536},
        out_of_range="!-",
        valued=2115,
    ),
    Paddle(
        rules="paddle",
        facts={"version": "3.3.1"},
        forms={
            "function": 25496, "operator": 15628, "static function": 172, "static operator": 292,
            "page tensors": 4464, "page scalars": 1488,
        },
        skipped={"function": 4084 + 420, "operator": 2628},
        kernels=("no-kernel", "rank"),
        skips_equal=True,
        others="less_than greater_than",
        valued=36,
        # Paddle crashes before it finds a kernel, which is not a rule: it adds the same number without an error.
        valued_differing={"less_than": 1},
    ),
    Oracle(
        rules="pandas",
        facts=_PANDAS,
        forms={"function": 9968, "operator": 5600, "method": 546, "mask": 252},
        others="clip concat diff",
        triple="concat",
        triples={"concat": 2744},
        valued=1120,
    ),
    Oracle(
        rules="pandas-nullable",
        facts=_PANDAS,
        forms={"function": 6809, "operator": 3806, "method": 363, "mask": 165},
        others="clip concat diff",
        triple="concat",
        triples={"concat": 1331},
        valued=880,
    ),
    MixedColumns(
        rules="pandas",
        framework="pandas-mixed",
        facts=_PANDAS,
        forms={"mixed function": 9548, "mixed operator": 5544, "mixed method": 616, "mixed mask": 308},
        triple="concat",
        triples={"concat": 11550},
    ),
    *(
        Polars(
            rules=rules,
            facts={"version": version},
            forms=forms,
            unmeasured="imag logical_and logical_or logical_xor",  # `&` of Booleans is measured as bitwise_and
            others=" ".join([*REDUCTIONS, "diff vecdot clip concat stack"]),
        )
        for rules, version, forms in (
            ("polars", "2.1.0", {"expression": 8010, "series": 5404}),
            ("polars-1", "1.30.0", {"expression": 6324, "series": 4236}),
        )
    ),
    Oracle(
        rules="pyarrow",
        facts={"version": "26.0.1", "scalars": _NONE, "nulls": _NONE},  # scalars count like arrays, nulls do not matter
        forms={"function": 7676, "operator": 2424},
        unmeasured="conj real imag",  # PyArrow has no complex numbers
        others="result_type diff",
        triples={"result_type": 12**3, "clip": 12**3, "concat": 12**3},
        valued=836,
    ),
    *(
        Oracle(
            rules=f"tf-{mode}",
            framework="tensorflow",
            mode=mode,
            facts={"version": "2.21.0", "zero_dimensional": 0},
            forms=forms,
            skipped=skipped,
            kernels=("no-kernel", "attribute"),
            numbers=NUMBERS,
            others=others,
            triples=triples,
            differing_triples=differing,
            out_of_range="vw",
            valued=63,
        )
        for mode, forms, skipped, others, triples, differing in (
            (
                "off", {"operator": 5576, "function": 9560, "numpy": 779}, {"operator": 4, "function": 37, "numpy": 6},
                "", {}, {},
            ),
            ("all", _TF_FORMS, _TF_SKIPPED, "result_type", {"result_type": 24**3}, {}),
            # TensorFlow folds from left to right. In mode SAFE it therefore refuses some orders of operands and accepts
            # others, and accepts integers with floats that cannot hold them if a weak float is between them.
            (
                "safe", _TF_FORMS, _TF_SKIPPED, "result_type", {"result_type": 24**3},
                {(False, "d"): 432, (True, "bf"): 8, (True, "f2"): 8, (True, "f4"): 4, (True, "c8"): 12},
            ),
        )
    ),
    Tinygrad(
        rules="tinygrad",
        facts={"version": "0.14.0"},
        forms={"function": 9804, "operator": 9272},
        skipped={"operator": 38},  # tinygrad's tensors have no operators `abs(t)` and `+t`
        kernels=("no-operator",),
        skips_equal=True,
        numbers=NUMBERS,
        unmeasured="logical_and logical_or logical_xor conj real imag",
        others="",
        triples={"result_type": 19**3},
        valued=85,
        # tinygrad refuses a negative int as exponent of integers; these rules decide by type, not by value.
        valued_differing={"pow": 5},
    ),
]  # fmt: skip

ORACLE_OF = {oracle.title: oracle for oracle in ORACLES_OF_RULES}
"""The same by the name of the rule set; `"pandas-mixed"` is the one of nullable columns next to others."""
