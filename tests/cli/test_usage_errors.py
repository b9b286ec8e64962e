"""A wrong command line is one line on standard error and exit code 2, before anything is done or written."""

import shlex

import pytest

PROGRAMS = {
    "model.py": """
        import jax.numpy as jnp

        def mix(x, w, scale):
            return x * w * scale

        def index(x):
            return jnp.argmax(x)
    """,
    "train.py": "",
}
LINES = {
    "tabel": "supremum: unknown command 'tabel': did you mean 'table'?",
    "latice": "supremum: unknown command 'latice': did you mean 'lattice'?",
    "train": "supremum: unknown command 'train': choose from explain, table, diff, ",
    "--versoin": "supremum: unknown option '--versoin': did you mean '--version'?; see supremum -h",
    "explain": "supremum explain: Missing argument 'OPERAND'; see supremum explain -h",
    "explain f33": "supremum: unknown dtype 'f33': did you mean 'f32'?",
    "explain i8 --operation ad": "supremum: unknown operation 'ad': did you mean 'add'?",
    "explain i8 --operation add": "supremum: add takes 2 operands, got 1",
    "explain i8 --into f8": "supremum: unknown dtype 'f8': did you mean 'f64'?",
    "rules --format jsno": "supremum: unknown format 'jsno': did you mean 'json'?",
    "table --rule jax": "supremum table: unknown option '--rule': did you mean '--rules'?; see supremum",
    "table --rules jxa": "supremum: unknown rule set 'jxa': did you mean 'jax'?",
    "table --types flaot32": "supremum: unknown dtype 'flaot32': did you mean 'float32'?",
    "table --format jsn": "supremum: unknown format 'jsn': did you mean 'json'?",
    "diff -o a.html": "supremum: Name two rule sets, as in supremum diff jax-x64 numpy.",
    "diff torch": "supremum: Name a second rule set to compare torch with, as in supremum diff torch numpy.",
    "diff numpy": "supremum: Name a second rule set to compare numpy with, as in supremum diff numpy jax-x64.",
    "diff torch numpy x": "supremum diff: Got unexpected extra argument",
    "diff jax-x64 nunpy -o a.html": "supremum: unknown rule set 'nunpy': did you mean 'numpy'?",
    "diff torch numpy --format htm -o a.html": "supremum: unknown format 'htm': did you mean 'html'?",
    "diff torch numpy --types int9 -o a.html": "supremum: unknown dtype 'int9'",
    "diff torch numpy --operation sin -o a.html": "supremum: unknown operation of two operands 'sin'",
    "lattice int8": "supremum: Types must come after an option such as --path, got int8 alone.",
    "lattice --path int8": "supremum: A path must have at least two types, got only int8",
    "lattice --path i8 f23": "supremum: unknown dtype 'f23': did you mean 'f32'?",
    "lattice --format png": "supremum: unknown format 'png': ",
    "lattice -o a.png": "supremum: The output must end with .svg, .dot, .gv, got a.png",
    "lattice --rules nunpy": "supremum: unknown rule set 'nunpy': did you mean 'numpy'?",
    "lattice --rules numpy-legacy -o a.dot": "supremum: numpy-legacy is not a lattice: (uint8, int8), float16",
    "lattice --rules numpy-legacy": "supremum: numpy-legacy is not a lattice: (uint8, int8), float16",
    "explore --operation sqrt -o a.html": "supremum: unknown operation of two operands 'sqrt'",
    "demo --case underflo": "supremum: unknown case 'underflo': did you mean 'underflow'?",
    "demo --seed x": "supremum demo: Invalid value for '--seed'",
    "casts nowhere.py": "supremum: There is no file nowhere.py",
    "casts model:mix": "supremum: The function model:mix needs --args",
    "casts model:mixx --args f32[2]": "supremum: unknown function 'mixx': did you mean 'mix'?",
    "casts modle:mix --args f32[2]": "supremum: There is no module modle here",
    "casts model:mix --args f31[2]": "unknown dtype 'f31': did you mean 'f32' or 'f16'?",
    "casts model:mix --args f32[2": "supremum: Arguments must be arrays such as f32[8,128] or key[], numbers",
    "casts model:mix --args f32[2]": "mix(x, w, scale) cannot be called with 1 argument: missing a required",
    "casts model:mix --args '1, 2, 3, 4'": "mix(x, w, scale) cannot be called with 4 arguments: too many",
    "casts train.py --format xml": "unknown format",
    "casts train.py --fail-on promotoin": "did you mean 'promotion'?",
    "casts train.py --class promotoin": "did you mean 'promotion'?",
    "casts train.py --baseline a.json --write-baseline b.json": "give one of them",
    "casts train.py --write-baseline -": "must be a file",
    "profile train.py --formats float17": "unknown dtype 'float17': did you mean",
    "profile train.py --formats int8": "real floating formats, got int8",
    "profile train.py --device tpuu": "supremum: unknown device 'tpuu': did you mean 'tpu'",
    "profile gone.py": "supremum: There is no file gone.py",
    "profile model:mixx --args f32[2]": "supremum: unknown function 'mixx': did you mean 'mix'?",
    "profile model:mix --args f32[2]": "mix(x, w, scale) cannot be called with 1 argument: missing a required",
    "profile train.py -o x.pdf": "supremum: The output must end with .txt, .json, .html",
    "profile model:mix": "supremum: The function model:mix needs --args",
    "nans model:mix": "supremum: The function model:mix needs --args",
    "nans model:index --args f32[2]": "supremum: first_nonfinite needs a function with a floating-point result",
    "nans model:indx --args f32[2]": "supremum: unknown function 'indx': did you mean 'index'?",
    "attribute train.py --policy mixed_float17": "did you mean 'mixed_float16' or",
}


@pytest.mark.parametrize("line", LINES)
def test_a_usage_error_is_one_line_that_writes_nothing(run, tmp_path, line):
    result = run(*shlex.split(line))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("supremum")
    start = LINES[line].startswith("supremum")
    assert result.stderr.startswith(LINES[line]) if start else LINES[line] in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {*PROGRAMS}
