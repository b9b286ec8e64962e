"""Einsum equations of inputs and a kernel, such as `"...i,io->...o"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from supremum.argument_checks import text
from supremum.errors import ArgumentError, shown

ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """An equation taken apart; each letter names an axis, `...` in `inputs` and `outputs` all that are left.

    Args:
        inputs: the letters of the inputs' axes.
        kernel: the letters of the kernel's axes.
        outputs: the letters of the result's axes.
    """

    inputs: str
    kernel: str
    outputs: str

    @classmethod
    def parse(cls, equation: str) -> Equation:
        """Take an equation apart.

        Args:
            equation: `"inputs,kernel->outputs"`; spaces do not count.

        Raises:
            ArgumentError: if it is none; a `ValueError`.

        >>> Equation.parse("...i, io -> ...o")
        Equation(inputs='...i', kernel='io', outputs='...o')
        """
        left, arrow, outputs = text("equation", equation).replace(" ", "").partition("->")
        inputs, comma, kernel = left.partition(",")
        parts = cls(inputs, kernel, outputs)
        problem = None if arrow and comma else "it has no comma or no '->'"
        problem = problem or parts._problem()
        if problem:
            raise ArgumentError(
                f"equation {shown(equation)} is not one of inputs and a kernel: {problem}; one is '...i,io->...o'"
            )
        return parts

    def _problem(self) -> str | None:
        """Why the parts make no equation, or None."""
        terms = [term.replace(ELLIPSIS, "", 1) for term in (self.inputs, self.kernel, self.outputs)]
        if not all(term.isalpha() and term.isascii() for term in terms if term):
            return "a term has other characters than letters"
        inputs, kernel, outputs = map(set, terms)
        if ELLIPSIS in self.kernel or (ELLIPSIS in self.inputs) != (ELLIPSIS in self.outputs):
            return "'...' stands in inputs and outputs, or in none"
        if len(kernel) < len(terms[1]) or len(outputs) < len(terms[2]):
            return "a letter occurs twice in the kernel or the outputs"
        if not outputs <= inputs | kernel:
            return "a letter of the outputs occurs nowhere else"
        return None

    def sums_one_operand(self) -> bool:
        """Whether an axis of one operand alone is summed over, which no product does.

        >>> Equation.parse("ab,bc->c").sums_one_operand(), Equation.parse("ab,bc->ac").sums_one_operand()
        (True, False)
        """
        alone = set(self.inputs) ^ set(self.kernel)
        return bool(alone - set(self.outputs) - set(ELLIPSIS))

    def check(self, x: Sequence[int], kernel: Sequence[int]) -> None:
        """Refuse shapes that the equation is not for.

        Args:
            x: the inputs' shape.
            kernel: the kernel's.

        Raises:
            ArgumentError: for a number of axes or a size that does not fit; a `ValueError`.
        """
        letters = self.inputs.replace(ELLIPSIS, "")
        left = len(x) - len(letters)
        if left < 0 or (left > 0 and ELLIPSIS not in self.inputs) or len(kernel) != len(self.kernel):
            raise ArgumentError(
                f"the equation '{self}' does not go with inputs of shape {tuple(x)} and a kernel of shape "
                f"{tuple(kernel)}: each letter is an axis"
            )
        before = self.inputs.partition(ELLIPSIS)[0] if ELLIPSIS in self.inputs else letters
        named = [*x[: len(before)], *x[len(before) + left :]]
        sizes: dict[str, int] = {}
        for letter, size in (*zip(letters, named, strict=True), *zip(self.kernel, kernel, strict=True)):
            if sizes.setdefault(letter, size) != size:
                raise ArgumentError(
                    f"in the equation '{self}' axis {shown(letter)} has sizes {sizes[letter]} and {size}, with inputs "
                    "of "
                    f"shape {tuple(x)} and a kernel of shape {tuple(kernel)}"
                )

    def bias_shape(self, kernel: Sequence[int]) -> tuple[int, ...]:
        """The shape of a bias: the kernel's axes that are the result's too, in the result's order.

        Args:
            kernel: the kernel's shape.

        >>> Equation.parse("bti,hio->bhto").bias_shape((8, 16, 4))
        (8, 4)
        """
        sizes = dict(zip(self.kernel, kernel, strict=True))
        return tuple(sizes[letter] for letter in self.outputs if letter in sizes)

    def over_outputs(self, kernel: Sequence[int], ndim: int) -> tuple[int, ...]:
        """The shape of a bias among the result's axes: 1 for those that the kernel does not have.

        Args:
            kernel: the kernel's shape.
            ndim: how many axes the result has.

        >>> Equation.parse("...i,io->...o").over_outputs((3, 4), 3)
        (1, 1, 4)
        """
        sizes = dict(zip(self.kernel, kernel, strict=True))
        before, dots, after = self.outputs.partition(ELLIPSIS)
        rest = [1] * (ndim - len(before) - len(after)) if dots else []
        return (*(sizes.get(letter, 1) for letter in before), *rest, *(sizes.get(letter, 1) for letter in after))

    def __str__(self) -> str:
        return f"{self.inputs},{self.kernel}->{self.outputs}"
