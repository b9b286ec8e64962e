"""Casts as annotations of GitHub's workflows, which show them beside the changed lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from supremum.tracing.cast import Cast
from supremum.tracing.causes import causes_of


def github_annotations(casts: Sequence[Cast], forbidden: Iterable[Cast], folder: Path) -> str:
    """One workflow command for each line that casts: an error for casts that are forbidden, else a warning.

    Casts that follow from a cause are counted at the cause. Other casts get an annotation only if they are forbidden.

    Args:
        casts: the casts to report.
        forbidden: those of them that are errors.
        folder: the folder of the checkout, which files are relative to.

    Source: GitHub's documentation, "Workflow commands for GitHub Actions", "Setting an error message".
    """
    errors = {id(cast) for cast in forbidden}
    causes, others = causes_of(casts)
    lines: dict[str, None] = {}
    for cause in causes:
        is_error = any(id(cast) in errors for cast in (*cause.casts, *cause.follow))
        lines[_annotation(is_error, cause.first, [cause.change, *map("".join, cause.costs)], cause.fixes, folder)] = (
            None
        )
    for cast in others:
        if id(cast) in errors:
            change = [f"{cast.source} -> {cast.target}, {cast.kind}"]
            lines[_annotation(True, cast, change, (cast.fix,) if cast.fix else (), folder)] = None
    return "".join(f"{line}\n" for line in lines)


def _annotation(is_error: bool, cast: Cast, about: Sequence[str], fixes: Sequence[str], folder: Path) -> str:
    title = f"{cast.kind}: {cast.source} to {cast.target}"
    where = []
    if cast.file:
        inside = Path(cast.file).is_relative_to(folder)
        name = PurePath(cast.file).relative_to(folder) if inside else PurePath(cast.file)
        where = [f"file={_property(name.as_posix())}", f"line={cast.line}"]
    message = "\n".join([cast.expression or "-", *about, *(f"fix: {fix}" for fix in fixes)])
    command = "error" if is_error else "warning"
    return f"::{command} {','.join([*where, f'title={_property(title)}'])}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
