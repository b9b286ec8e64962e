"""The types that users of the package see in editors and type checkers."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import get_args

import pytest

import supremum
from supremum.rules import RuleName, rule_names

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]


def test_rule_name_has_every_name_of_a_rule_set():
    assert get_args(RuleName) == rule_names()


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the package, as pip installs it, and with the dependencies of this one."""
    root = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    (packages,) = root.glob("lib/python*/site-packages")
    shutil.copytree(Path(supremum.__file__).parent, packages / "supremum", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return root


def pyright(environment, *arguments, cwd):
    pytest.importorskip("pyright")
    path = f"{environment / 'bin'}:/usr/bin:/bin"
    command = [BIN / "pyright", *arguments, "--outputjson"]
    done = subprocess.run(
        command, cwd=cwd, env={"PATH": path, "HOME": str(Path.home())}, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_type_checkers_know_the_public_names(environment, tmp_path):
    found = pyright(environment, "--verifytypes", "supremum", "--ignoreexternal", cwd=tmp_path)["typeCompleteness"]
    assert sum(found["exportedSymbolCounts"].values()) > 4000
    assert found["completenessScore"] > 0.985


@pytest.mark.slow
def test_typical_programs_have_the_types_that_they_state(environment, tmp_path):
    program = (ROOT / "tests/typed_program.py").read_text()
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "wrong.py").write_text(
        program.replace("assert_type(a + 1.5, supremum.Array)", "assert_type(a + 1.5, int)")
    )
    settings = {"enableTypeIgnoreComments": False, "reportUnnecessaryTypeIgnoreComment": "error"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    found = pyright(environment, cwd=tmp_path)
    assert found["summary"]["filesAnalyzed"] == 2
    told = [f"{Path(each['file']).name}: {each['message']}" for each in found["generalDiagnostics"]]
    assert [each.partition('"')[0] for each in told] == ["wrong.py: "], told
    assert "Array" in told[0]


def completions(environment, programs, folder):
    """What an editor offers at the end of each program: the answers of pyright's language server."""
    server = subprocess.Popen(
        [BIN / "pyright-langserver", "--stdio"],
        cwd=folder,
        env={"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(Path.home())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def send(**message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        server.stdin.flush()

    def received():
        length = 0
        while header := server.stdout.readline().strip():
            name, _, value = header.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        return json.loads(server.stdout.read(length))

    def ask(method, **params):
        send(id=method, method=method, params=params)
        while (message := received()).get("id") != method or "method" in message:
            if "id" in message:  # a question of the server, about settings
                send(id=message["id"], result=[{} for _ in (message["params"] or {}).get("items", [])])
        return message["result"]

    offered = []
    try:
        ask("initialize", processId=None, rootUri=folder.as_uri(), capabilities={})
        send(method="initialized", params={})
        for number, program in enumerate(programs):
            uri, lines = (folder / f"program{number}.py").as_uri(), program.split("\n")
            document = {"uri": uri, "languageId": "python", "version": 1, "text": program}
            send(method="textDocument/didOpen", params={"textDocument": document})
            place = {"line": len(lines) - 1, "character": len(lines[-1])}
            found = ask("textDocument/completion", textDocument={"uri": uri}, position=place)
            offered.append({item["label"].strip("\"'") for item in found["items"]})
    finally:
        server.kill()
        server.communicate()
    # Without the names of other arguments.
    return [{label for label in labels if not label.endswith("=")} for labels in offered]


@pytest.mark.slow
def test_editors_complete_the_names_of_rule_sets(environment, tmp_path):
    calls = ["result_type(1, 2, rules=", "use_rules(", "set_default_rules(", "analysis.order_of("]
    offered = completions(environment, [f'import supremum\nsupremum.{call}"' for call in calls], tmp_path)
    assert dict(zip(calls, offered, strict=True)) == {call: set(rule_names()) for call in calls}
