"""Einsum equations for inputs and a kernel, such as `"...i,io->...o"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from supremum.argument_checks import text
from supremum.errors import ArgumentError, shown

ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """A parsed equation: each letter names an axis, and `...` in `inputs` and `outputs` means all other axes.

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
        """Parse an equation.

        Args:
            equation: `"inputs,kernel->outputs"`; spaces are ignored.

        Raises:
            ArgumentError: for an invalid equation; a `ValueError`.

        >>> Equation.parse("...i, io -> ...o")
        Equation(inputs='...i', kernel='io', outputs='...o')
        """
        left, arrow, outputs = text("equation", equation).replace(" ", "").partition("->")
        inputs, comma, kernel = left.partition(",")
        parts = cls(inputs, kernel, outputs)
        problem = None if arrow and comma else "a comma or '->' is missing"
        problem = problem or parts._problem()
        if problem:
            raise ArgumentError(
                f"equation must have inputs and a kernel, as in '...i,io->...o', got {shown(equation)}: {problem}"
            )
        return parts

    def _problem(self) -> str | None:
        """The reason why the parts are not a valid equation, or None."""
        terms = [term.replace(ELLIPSIS, "", 1) for term in (self.inputs, self.kernel, self.outputs)]
        if not all(term.isalpha() and term.isascii() for term in terms if term):
            return "terms must consist of letters"
        inputs, kernel, outputs = map(set, terms)
        if ELLIPSIS in self.kernel or (ELLIPSIS in self.inputs) != (ELLIPSIS in self.outputs):
            return "'...' must be in both inputs and outputs, or in neither"
        if len(kernel) < len(terms[1]) or len(outputs) < len(terms[2]):
            return "a letter is repeated in the kernel or in the outputs"
        if not outputs <= inputs | kernel:
            return "a letter of the outputs is in neither inputs nor kernel"
        return None

    def sums_one_operand(self) -> bool:
        """Whether an axis that only one operand has is summed over, which is not part of a product.

        >>> Equation.parse("ab,bc->c").sums_one_operand(), Equation.parse("ab,bc->ac").sums_one_operand()
        (True, False)
        """
        alone = set(self.inputs) ^ set(self.kernel)
        return bool(alone - set(self.outputs) - set(ELLIPSIS))

    def check(self, x: Sequence[int], kernel: Sequence[int]) -> None:
        """Raise for shapes that do not match the equation.

        Args:
            x: the shape of the inputs.
            kernel: the shape of the kernel.

        Raises:
            ArgumentError: for a number of axes or a size that does not match; a `ValueError`.
        """
        letters = self.inputs.replace(ELLIPSIS, "")
        left = len(x) - len(letters)
        if left < 0 or (left > 0 and ELLIPSIS not in self.inputs) or len(kernel) != len(self.kernel):
            raise ArgumentError(
                f"inputs and kernel must have one axis for each letter of the equation '{self}', got shapes {tuple(x)} "
                f"and {tuple(kernel)}"
            )
        before = self.inputs.partition(ELLIPSIS)[0] if ELLIPSIS in self.inputs else letters
        named = [*x[: len(before)], *x[len(before) + left :]]
        sizes: dict[str, int] = {}
        for letter, size in (*zip(letters, named, strict=True), *zip(self.kernel, kernel, strict=True)):
            if sizes.setdefault(letter, size) != size:
                raise ArgumentError(
                    f"axis {shown(letter)} of the equation '{self}' must have one size, got {sizes[letter]} and {size} "
                    f"with inputs of shape {tuple(x)} and a kernel of shape {tuple(kernel)}"
                )

    def bias_shape(self, kernel: Sequence[int]) -> tuple[int, ...]:
        """The shape of a bias: the axes that kernel and result share, in the order of the result.

        Args:
            kernel: the kernel's shape.

        >>> Equation.parse("bti,hio->bhto").bias_shape((8, 16, 4))
        (8, 4)
        """
        sizes = dict(zip(self.kernel, kernel, strict=True))
        return tuple(sizes[letter] for letter in self.outputs if letter in sizes)

    def over_outputs(self, kernel: Sequence[int], ndim: int) -> tuple[int, ...]:
        """The shape of a bias that broadcasts to the result, with length 1 for axes that the kernel does not have.

        Args:
            kernel: the kernel's shape.
            ndim: the number of axes of the result.

        >>> Equation.parse("...i,io->...o").over_outputs((3, 4), 3)
        (1, 1, 4)
        """
        sizes = dict(zip(self.kernel, kernel, strict=True))
        before, _, after = self.outputs.partition(ELLIPSIS)
        others = "." * (ndim - len(before) - len(after))
        return tuple(sizes.get(letter, 1) for letter in before + others + after)

    def __str__(self) -> str:
        return f"{self.inputs},{self.kernel}->{self.outputs}"
