"""Baselines: the casts that a project has today, in a file, to refuse only new ones."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from supremum.atomic_files import as_path, whole_file, writing_error
from supremum.errors import FileError, shortened
from supremum.file_content import file_content
from supremum.jaxprs import installed_file
from supremum.tracing.cast import Cast

_FORMAT = "supremum casts baseline 1"
_FIELDS = ("file", "function", "expression", "class", "from", "to")
_COMPREHENSION = re.compile(r"\.<locals>\.<(list|set|dict)comp>$")
_Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The casts that are known, and how many of each one program may have.

    A cast is known by its file, function, expression, class and dtypes, not by its line, so that it stays known when
    the lines around it change. The casts that the program drops are not recorded.

    Args:
        counts: how many casts of each kind one program has, by the key of the cast.
        folder: the folder that files are relative to.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> known = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
    >>> later = casts(lambda x, w: x - w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
    >>> [cast.expression for cast in Baseline.of([known]).new(later)]
    ['x - w']
    """

    counts: dict[tuple[str, ...], int]
    folder: Path

    @classmethod
    def of(cls, reports: Iterable[Iterable[Cast]], folder: str | os.PathLike[str] = ".") -> Baseline:
        """The baseline of some programs. If several have the same cast, the highest count of them holds.

        Args:
            reports: the reports on the programs.
            folder: the folder that files are relative to, which must be that of the baseline's file.

        >>> import jax.numpy as jnp
        >>> from supremum.tracing import casts
        >>> report = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
        >>> baseline = Baseline.of([report])
        >>> len(report), baseline.new(report)
        (1, ())
        """
        place = as_path(folder)
        counts: Counter[_Key] = Counter()
        for report in reports:
            counts |= Counter(_key(cast, place) for cast in report if cast.times != 0)
        return cls(dict(counts), place)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Baseline:
        """Read a baseline from a file.

        Args:
            path: a file that `write` made.

        Raises:
            FileError: if there is no such file, or it is not a baseline.
        """
        file = as_path(path)
        name = shortened(str(file))
        try:
            data = json.loads(file_content(file).decode("utf-8"))
        except FileNotFoundError as error:
            raise FileError(f"There is no baseline {name}; write it with: {_command(file)}") from error
        except OSError as error:
            raise FileError(f"{name} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:  # also of text that is not UTF-8, or is nested too deeply
            raise FileError(
                f"{name} must be a baseline in JSON, got {error}; write it again: {_command(file)}"
            ) from error
        counts = _counts_in(data)
        if counts is None:
            raise FileError(f"{name} must be a baseline in the format '{_FORMAT}'; write it again: {_command(file)}")
        return cls(counts, file.parent)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the baseline to a file, atomically. Rows are sorted, so that changes are easy to review.

        Args:
            path: the file, in the folder of the baseline.

        Raises:
            FileError: if it cannot be written.
        """
        rows = [dict(zip(_FIELDS, key, strict=True)) | {"count": count} for key, count in sorted(self.counts.items())]
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        text = f'{{"format": {json.dumps(_FORMAT)}, "casts": [\n{lines}\n]}}\n'
        file = as_path(path)
        try:
            with whole_file(file) as temporary:
                temporary.write_text(text, "utf-8")
        except OSError as error:
            raise writing_error(file, error) from error

    def new(self, casts: Iterable[Cast]) -> tuple[Cast, ...]:
        """The casts of a program that the baseline does not have, or more of one than it has.

        Args:
            casts: casts of one program.
        """
        seen: Counter[_Key] = Counter()
        new: list[Cast] = []
        for cast in casts:
            if cast.times != 0:
                key = _key(cast, self.folder)
                seen[key] += 1
                if seen[key] > self.counts.get(key, 0):
                    new.append(cast)
        return tuple(new)

    def gone(self, reports: Iterable[Iterable[Cast]]) -> int:
        """How many casts of the baseline none of some programs has; a baseline without them is stricter.

        Args:
            reports: the reports on the programs.
        """
        return (Counter(self.counts) - Counter(Baseline.of(reports, self.folder).counts)).total()


def _key(cast: Cast, folder: Path) -> _Key:
    function = _COMPREHENSION.sub("", cast.function)  # only Python 3.11 has a function for it
    return _shared_name(cast.file, folder), function, cast.expression, cast.kind, str(cast.source), str(cast.target)


def _shared_name(file: str, folder: Path) -> str:
    """A file's name that is the same on every machine: in its package folder, or relative to the baseline."""
    if not file or file.startswith("<"):
        return file
    inside = installed_file(file)
    if inside is not None:
        return PurePath(inside).as_posix()
    try:
        return PurePath(os.path.relpath(os.path.realpath(file), os.path.realpath(folder))).as_posix()
    except ValueError:  # another drive
        return PurePath(file).as_posix()


def _counts_in(data: Any) -> dict[_Key, int] | None:
    """The counts in the content of a file; None if it has another form."""
    rows: Any = data.get("casts") if isinstance(data, dict) and data.get("format") == _FORMAT else None
    if not isinstance(rows, list):
        return None
    counts: dict[_Key, int] = {}
    for row in rows:
        if not isinstance(row, dict):
            return None
        values: list[Any] = [row.get(field) for field in _FIELDS]
        key = tuple(value for value in values if isinstance(value, str))
        count = row.get("count")
        if len(key) < len(_FIELDS) or type(count) is not int or count < 1 or key in counts:
            return None
        counts[key] = count
    return counts


def _command(file: Path) -> str:
    return f"supremum casts ... --write-baseline {shortened(str(file))}"
