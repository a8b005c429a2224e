from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.process import FORECASTLE, SHIPPING, serving
from forecastle.cli.export import place, shapes
from forecastle.errors import UsageError
from runtimes.archives import colours, jpeg


def forecastle(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": "", **environment}
    return subprocess.run(
        [FORECASTLE[0], *arguments], cwd=folder, capture_output=True, text=True, check=False, env=variables
    )


def test_what_is_exported_is_served_with_the_same_answers(tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    (tmp_path / "shipping.py").write_text(SHIPPING)
    done = forecastle("export", "shades=colours.zip", "--output", "models", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["file", "bytes", "sha256"]
    assert [line.split()[0] for line in lines[1:5]] == [
        "colours-0000.params",
        "colours-symbol.json",
        "signature.json",
        "synset.txt",
    ]
    assert lines[5].startswith(f"wrote {tmp_path}/models/shades.zip, mms archive, ")
    assert forecastle("export", "shipping.py", "--output", "models/sea.zip", folder=tmp_path).returncode == 0
    with serving("before=colours.zip", "models/shades.zip", "models/sea.zip", folder=tmp_path) as server:
        before, after = (
            server.post(f"/{name}/predict", jpeg("lime"), "image/jpeg").json() for name in ("before", "shades")
        )
        assert before == after
        assert after["prediction"][0][0]["class"] == "green"
        reply = server.post("/sea/predict", b'{"location": "Lundy"}')
        assert reply.json()["prediction"]["location"] == "Lundy"


def test_the_settings_of_a_server_are_none_of_export_s_business(tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    (tmp_path / "forecastle.toml").write_text(
        'port = 9999\nstart_timeout = "100s"\ncache_dir = "kept"\n[models]\na = "x"\n'
    )
    variables = {"SAGEMAKER_BIND_TO_PORT": "9000", "SAGEMAKER_MULTI_MODEL": "true"}
    done = forecastle("export", "shades=colours.zip", folder=tmp_path, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "shades.zip").is_file()
    assert (tmp_path / "kept" / "unpacked").is_dir()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["colours.zip"], 2, "colours.zip is there already; write over it with --force, or choose another place"),
        (["a=gone.zip"], 1, "gone.zip: there is no file or directory at "),
        (["a=json.tool"], 2, "json.tool is an installed module"),
        (["a=colours.zip", "--shape", "data"], 2, "--shape 'data' is no shape: expected NAME=SIZES"),
        (["a=colours.zip", "--signature", "gone.json"], 1, "gone.json: there is no such file"),
        (["a/b=colours.zip"], 2, "'a/b' cannot be a model's name"),
        (["a=colours.zip", "--start-timeout", "x"], 2, "--start-timeout: 'x' is not a duration"),
        (["a=text.txt"], 1, "text.txt is a file that begins with"),
    ],
)
def test_a_failure_is_one_sentence_on_stderr(tmp_path: Path, arguments: list[str], code: int, sentence: str) -> None:
    colours(tmp_path / "colours.zip")
    (tmp_path / "text.txt").write_text("hello")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = forecastle("export", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"forecastle: {sentence}")
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == before


def test_a_note_goes_to_stderr_and_no_check_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def model_fn(model_dir): raise ValueError('not here')\n")
    refused = forecastle("export", "hooks.py", folder=tmp_path)
    assert refused.returncode == 1
    assert "(--no-check writes an archive all the same): hooks.py cannot be loaded: ValueError" in refused.stderr
    assert forecastle("export", "hooks.py", "--no-check", folder=tmp_path).returncode == 0
    assert (tmp_path / "hooks.zip").is_file()


@pytest.mark.parametrize(
    ("output", "path"),
    [
        (None, "net.zip"),
        ("out", "out/net.zip"),
        ("a/b.zip", "a/b.zip"),
        ("b.model", "b.model"),
        ("v1.2", "v1.2/net.zip"),
    ],
)
def test_an_output_is_an_archive_or_a_folder(output: str | None, path: str) -> None:
    assert place(Path(output) if output else None, "net", ".zip") == Path(path)


def test_an_output_s_folder_may_be_called_like_an_archive(tmp_path: Path) -> None:
    (tmp_path / "x.zip").mkdir()
    assert place(tmp_path / "x.zip", "net", ".zip") == tmp_path / "x.zip" / "net.zip"


def test_shapes_are_read_with_0_for_any_size() -> None:
    assert shapes(["data=0,3,224,224", "mask=[0, 1]", "a=b=5"]) == {
        "data": (None, 3, 224, 224),
        "mask": (None, 1),
        "a=b": (5,),
    }
    for text in ("data", "=0,3", "data=", "data=0,x", "data=0,-1", "data=0,,3", "data=0,٣"):
        with pytest.raises(UsageError, match="is no shape"):
            shapes([text])
