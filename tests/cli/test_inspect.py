from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import joblib
from sklearn.linear_model import LogisticRegression

from cli.process import FORECASTLE
from cli.test_export import forecastle
from models.builders import make_directory
from runtimes.archives import colours, node, signature, write
from runtimes.mxnet.test_native import smooth
from side import CACHE


def properties(said: str) -> dict[str, str]:
    """The first table of what was printed."""
    lines = said.partition("\n\n")[0].splitlines()
    assert lines[0].split() == ["property", "value"]
    return {name: value.strip() for name, _, value in (line.partition(" ") for line in lines[1:])}


def test_an_archive_is_told_and_tried(tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    done = forecastle("inspect", "colours.zip", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = properties(done.stdout)
    assert told["kind"] == "mms archive"
    assert told["runtime"] == "mxnet"
    assert told["labels"] == "6, the first is 'red'"
    assert told["operators"] == "Flatten 1, FullyConnected 1, softmax 1"
    assert told["runs"].startswith("yes, it loads in ")
    assert "manifest" not in told
    _, tensors, files = done.stdout.split("\n\n")
    assert [line.split() for line in tensors.splitlines()] == [
        ["tensor", "name", "shape", "type", "content"],
        ["input", "data", "[0,", "3,", "8,", "8]", "float32", "image/jpeg"],
        ["output", "softmax", "[0,", "6]", "float32", "application/json"],
    ]
    assert [line.split()[-1] for line in files.splitlines()] == ["what", "parameters", "network", "signature", "labels"]


def test_what_will_not_run_is_told_with_the_reason_and_exit_code_1(tmp_path: Path) -> None:
    nodes = [node("null", "data"), node("relu", "y", 0)]
    write(tmp_path / "wrong.zip", nodes, {}, signature({"data": [0, 3]}, {"y": [0, 4]}, "application/json"))
    done = forecastle("inspect", "wrong.zip", folder=tmp_path)
    assert done.returncode == 1
    assert properties(done.stdout)["runs"].startswith("no: wrong.zip: signature.json says that the output 'y' has")
    document = json.loads(forecastle("inspect", "wrong.zip", "--json", folder=tmp_path).stdout)
    assert document["runs"] is False
    assert "the output 'y'" in document["reason"]
    assert document["operators"] == {"relu": 1}
    untried = forecastle("inspect", "wrong.zip", "--no-load", folder=tmp_path)
    assert untried.returncode == 0
    assert properties(untried.stdout)["runs"] == "not tried"


def test_mxnet_is_installed_only_when_asked(tmp_path: Path) -> None:
    smooth(tmp_path / "smooth.zip")
    told = properties(forecastle("inspect", "smooth.zip", folder=tmp_path).stdout)
    why = "MXNet is to be installed first (the operator smooth_l1 is run by MXNet alone)"
    assert told["runs"] == f"not tried, since {why}; --load tries it"
    loaded = forecastle("inspect", "smooth.zip", "--load", "--cache-dir", str(CACHE), folder=tmp_path)
    assert properties(loaded.stdout)["runs"].startswith("yes, it loads in ")


def test_what_runs_code_of_its_own_is_loaded_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def model_fn(model_dir): open(model_dir + '/ran', 'w').close(); return 1\n")
    told = properties(forecastle("inspect", "hooks.py", folder=tmp_path).stdout)
    assert told["runs"].startswith("not tried, since that runs code that it brings; --load tries it")
    assert not (tmp_path / "ran").exists()
    assert properties(forecastle("inspect", "hooks.py", "--load", folder=tmp_path).stdout)["runs"].startswith("yes")
    assert (tmp_path / "ran").exists()
    joblib.dump(LogisticRegression().fit([[0], [1]], [0, 1]), tmp_path / "m.joblib")
    document = json.loads(forecastle("inspect", "m.joblib", "--json", folder=tmp_path).stdout)
    assert (document["kind"], document["runs"], document["signature"]) == ("sklearn", None, None)
    document = json.loads(forecastle("inspect", "m.joblib", "--json", "--load", folder=tmp_path).stdout)
    assert document["runs"] is True
    assert document["signature"]["inputs"][0]["shape"] == [None, 1]


def test_requirements_are_told_and_not_installed(tmp_path: Path) -> None:
    folder = make_directory(tmp_path / "m", {"requirements.txt": b"nowhere==9\n"})
    make_directory(folder / "code", {"inference.py": b"def predict_fn(data, model): return 1\n"})
    told = properties(forecastle("inspect", "m", folder=tmp_path).stdout)
    assert (told["requirements"], told["hooks"]) == ("nowhere==9", "inference.py")
    assert not (tmp_path / "cache" / "forecastle" / "environments").exists()


def test_an_exported_archive_that_was_changed_is_found_out(tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    assert forecastle("export", "net=colours.zip", folder=tmp_path).returncode == 0
    done = forecastle("inspect", "net.zip", folder=tmp_path)
    assert properties(done.stdout)["manifest"] == "the files are those that it names"
    subprocess.run(["unzip", "-q", "net.zip", "-d", "net"], cwd=tmp_path, check=True)
    (tmp_path / "net" / "synset.txt").write_text("1\n2\n3\n4\n5\n6\n")
    done = forecastle("inspect", "net", folder=tmp_path)
    assert done.returncode == 1
    assert properties(done.stdout)["manifest"] == "synset.txt is not the file whose digest the manifest has"


def test_what_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04")
    done = forecastle("inspect", "x.zip", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("forecastle: x.zip is a truncated or corrupt zip archive")


def test_a_terminal_gets_a_drawn_table(tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    ours, theirs = pty.openpty()
    command = [FORECASTLE[0], "inspect", "colours.zip", "--cache-dir", "kept"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
    os.close(ours)
    assert process.returncode == 0
    assert "│" in said.decode()


def test_a_reader_that_has_enough_ends_it_without_a_traceback(tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    command = [FORECASTLE[0], "inspect", "colours.zip", "--cache-dir", "kept"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
