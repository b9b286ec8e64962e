"""A callback that writes a CSV file with one line per epoch."""

from __future__ import annotations

import csv
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from supremum.atomic_files import as_path, writing_error
from supremum.errors import ArgumentError, shown
from supremum.training.callbacks.callback import Callback


class CSVLogger(Callback):
    """Write one line per epoch to a CSV file.

    Args:
        path: the file.
        append: whether to append to an existing file, which must have the same columns.
    """

    def __init__(self, path: str | Path, *, append: bool = False) -> None:
        self._path = as_path(path)
        self._append = append
        self._columns: list[str] | None = None

    def on_train_begin(self) -> None:
        """Check that the file can be written."""
        self._columns = None
        with self._clear_errors():
            if self._append and self._path.exists() and self._path.stat().st_size:
                with self._path.open(newline="") as file:
                    self._columns = next(csv.reader(file))
            else:
                self._path.write_text("")

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Write the line."""
        row = {"epoch": epoch, **logs}
        if self._columns is not None and set(row) != set(self._columns):
            raise ArgumentError(
                f"{self._path} has the columns {shown(self._columns)}, but the logs have {shown(list(row))}; "
                "use another path"
            )
        with self._clear_errors(), self._path.open("a", newline="") as file:
            if self._columns is None:
                self._columns = list(row)
                csv.writer(file).writerow(self._columns)
            csv.writer(file).writerow([row[name] for name in self._columns])

    @contextmanager
    def _clear_errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise writing_error(self._path, error) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise ArgumentError(f"{self._path} is not a CSV file; use another path") from error
