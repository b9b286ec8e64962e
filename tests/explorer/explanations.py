"""The explanations that the page may have for a decision."""


def is_0d(operand):
    return operand.dtype is not None and operand.ndim == 0 and operand.value is None


def explanations(decision):
    """The explanations of which the page must have one; those of operations and of numbers have no fix."""
    rows = ["\t".join(row) for row in decision.document().rows]
    whole, without = "\n".join(rows), "\n".join(row for row in rows if not row.startswith("fix\t"))
    if decision.operation != "result_type" or any(each.value is not None for each in decision.operands):
        return {without}
    # Arrays without dimensions may share the explanation of other arrays.
    return {whole, without} if any(map(is_0d, decision.operands)) else {whole}
