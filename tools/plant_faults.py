"""Plant faults in the code, one at a time, and count how many the fast tests notice.

A fault changes one comparison, constant, operator, `and`, `or` or `not`, or argument in `src/`. Faults are chosen by a
seed, from each package in proportion to its lines of code. A choice depends on the seed and on the changed expression
alone, so a change elsewhere leaves it as it is, and two versions of the code can be compared.

For each fault the fast tests run whose coverage contexts touch its line, the quickest first. The faults that these do
not notice are planted together, and all of `make test` runs once; the tests and checks that fail then run again with
each of those faults alone. Faults that change nothing stand in `equivalent_faults.toml`,
with the reason, and are not planted.

    python tools/plant_faults.py [--count 100] [--seed 43] [--folder out/faults] [--only TEXT]

The folder holds two clones of HEAD, the coverage, and `results.json`. A run that was stopped goes on where it ended.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from queue import Queue

from count_code import count_files

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_faults.toml")
_SECONDS = 40
"""The tests that run for one fault take about this long in the run that measures coverage."""
_MOST = 200
"""The most tests that run for one fault."""
_SLOWEST = 20
"""A fault that makes tests this many times slower than expected is noticed."""
_WORKERS = 2
_PYTEST = (".venv/bin/python", "-m", "pytest", "-p", "plant_faults")

_COMPARISONS = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}  # fmt: skip
_OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.MatMult: ("@", "*"), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A change of one expression: the text between two offsets of a file, and what replaces it."""

    kind: str
    """`comparison`, `constant`, `operator`, `logic` or `argument`."""
    file: str
    where: str
    """The function or class, such as `RuleSet.decide`; empty for the module."""
    ordinal: int
    """How many changes of the same text to the same text come before it in `where`."""
    line: int
    start: int
    end: int
    before: str
    after: str
    context: str
    """The whole line, as it was."""

    @property
    def name(self) -> str:
        """What identifies the fault in every version of the code that has it."""
        return f"{self.file}::{self.where}#{self.ordinal} {self.before} -> {self.after}"

    def order(self, seed: int) -> str:
        """Where the fault comes in the random order of a seed."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).hexdigest()


def faults_of(path: Path, root: Path = ROOT) -> list[Fault]:
    """Return all faults that can be planted in a file."""
    text = path.read_text("utf-8")
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    file, lines = path.relative_to(root).as_posix(), text.splitlines()
    counts = Counter[tuple[str, str, str]]()
    faults: list[Fault] = []
    for kind, where, start, end, after in sorted(finder.found, key=lambda each: each[2:4]):
        before, line = text[start:end], text.count("\n", 0, start) + 1
        ordinal = counts[where, before, after]
        counts[where, before, after] += 1
        faults.append(Fault(kind, file, where, ordinal, line, start, end, before, after, lines[line - 1].strip()))
    return faults


class _Finder(ast.NodeVisitor):
    """Collect the changes of a module, except in annotations and f-strings."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[tuple[str, str, int, int, str]] = []
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = text.splitlines()
        self._where: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        self._enter(node, [*arguments.defaults, *arguments.kw_defaults, *node.decorator_list], node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node, [*node.keywords, *node.decorator_list], node.body)

    def _enter(self, node: ast.FunctionDef | ast.ClassDef, outside: list[ast.AST | None], body: list[ast.stmt]) -> None:
        self._where.append(node.name)
        for each in (*outside, *body):
            if each is not None:
                self.visit(each)
        self._where.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave f-strings alone: before Python 3.12 their parts have no positions."""

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            self._replace_between("comparison", left, right, *_COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._replace_between("operator", node.left, node.right, *_OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        # With several operators, a change of one would change how the others group.
        if len(node.values) == 2:
            self._replace_between("logic", *node.values, *_OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            start, operand = self._span(node)[0], self._span(node.operand)[0]
            kind = "logic" if isinstance(node.op, ast.Not) else "operator"
            self._add(kind, start, operand, self.text[start:operand].replace("not ", "").lstrip("-~"))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant", *self._span(node), str(not node.value))
        elif isinstance(node.value, int | float):
            self._add("constant", *self._span(node), f"({self.text[slice(*self._span(node))]} + 1)")

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if len(node.args) >= 2 and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
            first, second = self._span(node.args[0]), self._span(node.args[1])
            one, two = self.text[slice(*first)], self.text[slice(*second)]
            self._add("argument", first[0], second[1], f"{two}{self.text[first[1] : second[0]]}{one}")
        elif node.keywords and (node.args or len(node.keywords) > 1) and node.keywords[-1].arg:
            before = (self._span(each) for each in (*node.args, *node.keywords[:-1]))
            self._add("argument", max(end for _, end in before), self._span(node.keywords[-1])[1], "")

    def _span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        def offset(line: int, column: int) -> int:
            return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def _replace_between(self, kind: str, left: ast.expr, right: ast.expr, before: str, after: str) -> None:
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = re.escape(before).replace(r"\ ", r"\s+")
        if found := re.search(rf"\b{pattern}\b" if before.isalpha() else pattern, self.text[start:end]):
            self._add(kind, start + found.start(), start + found.end(), after)

    def _add(self, kind: str, start: int, end: int, after: str) -> None:
        if self.text[start:end] != after:
            self.found.append((kind, ".".join(self._where), start, end, after))


def choose(root: Path, count: int, seed: int) -> list[Fault]:
    """Return faults in a random order, from each package in proportion to its lines of code.

    Args:
        root: the root of the repository.
        count: how many.
        seed: chooses the order.
    """
    packages = defaultdict[str, list[Path]](list)
    for path in sorted((root / "src").rglob("*.py")):
        parts = path.relative_to(root / "src/supremum").parts if path.is_relative_to(root / "src/supremum") else ()
        packages[parts[0] if len(parts) > 1 else ""].append(path)
    sizes = {name: sum(count_files(path)[1] for path in paths) for name, paths in packages.items()}
    shares = {name: count * size / sum(sizes.values()) for name, size in sizes.items()}
    whole = {name: int(share) for name, share in shares.items()}
    missing = count - sum(whole.values())
    for name in sorted(shares, key=lambda name: whole[name] - shares[name])[:missing]:
        whole[name] += 1
    chosen = [
        fault
        for name, paths in packages.items()
        for fault in islice(
            _in_order([each for path in paths for each in faults_of(path, root)], root, seed), whole[name]
        )
    ]
    return sorted(chosen, key=lambda fault: fault.order(seed))


def _in_order(faults: list[Fault], root: Path, seed: int) -> Iterator[Fault]:
    """Yield faults in a random order in which the kinds alternate, without those that leave no valid Python."""
    seen = Counter[str]()
    ranks: dict[Fault, tuple[int, str]] = {}
    for fault in sorted(faults, key=lambda fault: fault.order(seed)):
        ranks[fault] = seen[fault.kind], fault.order(seed)
        seen[fault.kind] += 1
    for fault in sorted(faults, key=ranks.__getitem__):
        try:
            ast.parse(planted(root, [fault])[fault.file])
        except SyntaxError:  # such as an argument in parentheses, which have no position
            continue
        yield fault


class Clone:
    """A clone of HEAD with an environment of its own, in which faults are planted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.exists():
            subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        if _head(folder) != _head(ROOT):
            sys.exit(
                f"{folder} is a clone of an earlier commit; remove its parent folder, or name another with --folder"
            )
        subprocess.run(
            ["make", "--silent", ".venv/.developed", "torch"], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        subprocess.run(["git", "checkout", "--quiet", "--", "src"], cwd=folder, check=True)

    def plant(self, faults: list[Fault]) -> None:
        """Write the files that have the faults."""
        for file, text in planted(self.folder, faults).items():
            path = self.folder / file
            path.write_text(text, "utf-8")
            # A change that keeps a file's size within a second of the last one would leave the compiled file valid.
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink()

    def remove(self, faults: list[Fault]) -> None:
        """Write the files as they were."""
        files = sorted({fault.file for fault in faults})
        subprocess.run(["git", "checkout", "--quiet", "--", *files], cwd=self.folder, check=True)

    def run(self, *command: str, record: Path, timeout: float | None = None, **variables: str) -> tuple[int, str]:
        """Run a command, and return its exit code, or 124 if it was stopped, and what it printed."""
        environment = os.environ | {
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(Path(__file__).parent), "FAULT_RECORD": str(record),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        } | variables  # fmt: skip
        record.unlink(missing_ok=True)
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, text=True, timeout=timeout,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            subprocess.run(["pkill", "--full", str(self.folder)], check=False)
            return 124, str(error.stdout)
        return done.returncode, done.stdout


def _head(folder: Path) -> str:
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True).stdout


def planted(root: Path, faults: list[Fault]) -> dict[str, str]:
    """Return the text of each file that has some of the faults, with them."""
    texts: dict[str, str] = {}
    for fault in sorted(faults, key=lambda fault: -fault.start):  # from the end, which leaves the other offsets valid
        text = texts.get(fault.file) or (root / fault.file).read_text("utf-8")
        assert text[fault.start : fault.end] == fault.before, fault
        texts[fault.file] = text[: fault.start] + fault.after + text[fault.end :]
    return texts


# pytest loads this module as a plugin, which gives each test a coverage context and writes down how it ended.


def pytest_runtest_logstart(nodeid: str) -> None:
    """Name the coverage context after the test."""
    import coverage

    if (measured := coverage.Coverage.current()) is not None:
        measured.switch_context(nodeid)


def pytest_runtest_logfinish() -> None:
    """Leave the test's coverage context."""
    import coverage

    if (measured := coverage.Coverage.current()) is not None:
        measured.switch_context("")


def pytest_runtest_logreport(report: object) -> None:
    """Append the outcome of a test, in the process that starts the workers."""
    if (record := os.environ.get("FAULT_RECORD")) and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(record).open("a", encoding="utf-8") as file:
            file.write(json.dumps([report.nodeid, report.outcome, report.duration]) + "\n")  # type: ignore[attr-defined]


def read_record(record: Path) -> Iterator[tuple[str, str, float]]:
    """Yield test, outcome and seconds of each phase of each test that ran."""
    if record.exists():
        yield from (json.loads(line) for line in record.read_text("utf-8").splitlines())


class Tests:
    """The fast tests, the lines that each touches, and how long it takes, as measured once without faults."""

    def __init__(self, clone: Clone, folder: Path) -> None:
        self.folder, self.record = folder, folder / "record.jsonl"
        if not (folder / "coverage").exists():
            self._measure(clone)
        from coverage import CoverageData

        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self._files = {path.partition("/src/")[2]: path for path in self._data.measured_files()}
        self.seconds = Counter[str]()
        self.failing: set[str] = set()
        """The tests that fail without faults, which can notice none."""
        for test, outcome, seconds in read_record(self.record):
            self.seconds[test] += seconds
            if outcome == "failed":
                self.failing.add(test)

    def _measure(self, clone: Clone) -> None:
        pytest = f"{_PYTEST[0]} -m coverage run {' '.join(_PYTEST[1:])} --numprocesses=auto --dist=worksteal"
        raw = self.folder / "raw"
        raw.mkdir(exist_ok=True)
        command = ("make", "--ignore-errors", "tests", f"PYTEST={pytest}")
        clone.run(*command, record=self.record, COVERAGE_FILE=str(raw / "coverage"))
        combine = ("-m", "coverage", "combine", "--quiet", f"--data-file={self.folder / 'coverage'}", str(raw))
        subprocess.run([sys.executable, *combine], cwd=clone.folder, check=True)

    def touching(self, fault: Fault) -> list[str]:
        """Return the tests to run for a fault, those with a similar name first, then the quickest.

        These are the tests that touch its line, or its file if only imports touch the line.
        """
        path = self._files.get(fault.file.removeprefix("src/"))
        contexts = self._data.contexts_by_lineno(path) if path else {}
        last = fault.line + fault.before.count("\n")
        tests = {test for line in range(fault.line, last + 1) for test in contexts.get(line, ())} - {""}
        tests = tests or {test for names in contexts.values() for test in names} - {""}
        stem, package = Path(fault.file).stem, Path(fault.file).parent.name

        def rank(test: str) -> tuple[int, float]:
            file = test.partition("::")[0]
            return 0 if stem in file else 1 if f"/{package}/" in file else 2, self.seconds[test]

        return self.within(sorted(tests - self.failing, key=rank))

    def within(self, tests: list[str]) -> list[str]:
        """Return the first tests, at most `_MOST`, that together take about `_SECONDS`."""
        chosen: list[str] = []
        total = 0.0
        for test in tests:
            if total + self.seconds[test] <= _SECONDS and len(chosen) < _MOST:
                chosen.append(test)
                total += self.seconds[test]
        return chosen or tests[:1]

    def notice(self, clone: Clone, fault: Fault, tests: list[str]) -> str:
        """Return what notices a fault among some tests, or an empty string if none does."""
        if not tests:
            return ""
        clone.plant([fault])
        timeout = 120 + _SLOWEST * sum(self.seconds[test] for test in tests)
        record = self.folder / f"{clone.folder.name}.jsonl"
        command = (*_PYTEST, "-n", "0", "-x", "-q", "-m", "not slow", *tests)
        code, output = clone.run(*command, record=record, timeout=timeout)
        clone.remove([fault])
        if code in (0, 5):
            return ""
        if code == 124:
            return f"no end within {timeout:.0f} s"
        failed = [test for test, outcome, _ in read_record(record) if outcome == "failed"]
        if not failed and "rror" not in output:
            raise RuntimeError(f"pytest failed with exit code {code}:\n{output[-2000:]}")
        return failed[0] if failed else "the import fails"


def run_together(clone: Clone, tests: Tests, faults: list[Fault]) -> tuple[dict[str, str], list[str]]:
    """Plant several faults at once and run `make test`.

    Returns:
        What pyright notices, by the fault's name, and the tests that fail, the quickest first.
    """
    clone.plant(faults)
    record = tests.folder / "together.jsonl"
    _, output = clone.run("make", "--ignore-errors", "types", record=record)
    errors = re.findall(r"/(src/\S+\.py):(\d+):\d+ - error", output)
    typed = {
        fault.name: "pyright"
        for fault in faults
        for file, line in errors
        if file == fault.file and abs(int(line) - fault.line) <= 3
    }
    pytest = f"{' '.join(_PYTEST)} --numprocesses=auto --dist=worksteal"
    _, output = clone.run("make", "--ignore-errors", "tests", f"PYTEST={pytest}", record=record)
    (tests.folder / "together.log").write_text(output, "utf-8")
    clone.remove(faults)
    ends = list(read_record(record))
    ran = len({test for test, *_ in ends})
    if ran < len(tests.seconds):
        print(f"only {ran} of {len(tests.seconds)} tests ran; see {tests.folder}/together.log")
    failed = {test for test, outcome, _ in ends if outcome == "failed"} - tests.failing
    return typed, sorted(failed, key=lambda test: tests.seconds[test])


def main() -> int:
    """Plant the faults, print who noticed each, and return 1 if one survives that is not listed as equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="how many faults")
    parser.add_argument("--seed", type=int, default=43, help="chooses the faults")
    parser.add_argument("--folder", type=Path, default=ROOT / "out/faults", help="where everything is written")
    parser.add_argument("--only", default="", help="plant only the faults whose name contains this text")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)

    clones = Queue[Clone]()
    for index in range(_WORKERS):
        clones.put(Clone(folder / f"clone-{index}"))
    first = clones.queue[0]
    chosen = [fault for fault in choose(first.folder, arguments.count, arguments.seed) if arguments.only in fault.name]
    (folder / "faults.json").write_text(json.dumps([asdict(fault) for fault in chosen], indent=1), "utf-8")
    equivalent = equivalent_faults()
    faults = [fault for fault in chosen if fault.name not in equivalent]
    tests = Tests(first, folder)
    results = folder / "results.json"
    noticed: dict[str, str] = json.loads(results.read_text("utf-8")) if results.exists() else {}

    def keep(found: dict[str, str]) -> None:
        noticed.update(found)
        results.write_text(json.dumps(noticed, indent=1), "utf-8")

    def try_alone(fault: Fault, chosen: list[str]) -> None:
        clone = clones.get()
        try:
            by = tests.notice(clone, fault, chosen)
            print("noticed " if by else "survives", fault.name, by, sep="  ", flush=True)
            keep({fault.name: by})
        finally:
            clones.put(clone)

    with ThreadPoolExecutor(_WORKERS) as pool:
        untried = [fault for fault in faults if fault.name not in noticed]
        list(pool.map(lambda fault: try_alone(fault, tests.touching(fault)), untried))
        left = [fault for fault in faults if not noticed[fault.name]]
        if left:
            typed, failed = run_together(first, tests, left)
            keep(typed)
            left = [fault for fault in left if fault.name not in typed]
            if failed:
                list(pool.map(lambda fault: try_alone(fault, tests.within(failed)), left))
    survivors = [fault for fault in faults if not noticed[fault.name]]
    report(faults, survivors)
    print(f"\n{len(chosen) - len(faults)} others change nothing.")
    return bool(survivors)


def equivalent_faults() -> set[str]:
    """Return the names of the faults that change nothing, which are not planted."""
    listed = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("equivalent", [])
    return {each["fault"] for each in listed if each["reason"]}


def report(faults: list[Fault], survivors: list[Fault]) -> None:
    """Print the share of faults that were noticed, and each one that was not."""
    count = len(faults) - len(survivors)
    print(
        f"\n{count} of {len(faults)} faults that change something are noticed, {count / len(faults):.1%}. Not noticed:"
    )
    for fault in survivors:
        print(f"\n{fault.file}:{fault.line} in {fault.where or 'the module'}\n    {fault.context}")
        print(f"    {fault.before!r} becomes {fault.after!r}")


if __name__ == "__main__":
    sys.exit(main())
