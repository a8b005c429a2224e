from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import httpx
import numpy as np
import pytest
from examples.imagenet import archive as imagenet

from cli.process import serving
from forecastle.errors import UsageError
from forecastle.models.export import Order
from mms.export_command import main, read
from runtimes.archives import colours, two_pictures

MMS = (str(Path(sys.executable).with_name("mms")), "--port", "0")
SERVICE = "from mms.mxnet_vision_service import MXNetVisionService\nclass Mine(MXNetVisionService): pass\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def mms_export(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_the_seed_s_command_line_is_read() -> None:
    order = read(
        [
            *("--model", "resnet-18=models/resnet-18.zip", "--signature", "signature.json", "--synset", "synset.txt"),
            *("--export-path", "models"),
        ]
    )
    assert order == Order(
        name="resnet-18",
        source="models/resnet-18.zip",
        target=Path("models/resnet-18.zip"),
        signature=Path("signature.json"),
        synset=Path("synset.txt"),
    )
    assert read(["--model", "a=b=c"]).source == "b=c"


def test_the_later_command_line_is_read() -> None:
    order = read(["--model-name", "a", "--model-path", "m", "--service-file-path", "s.py", "--force", "--no-check"])
    assert order == Order("a", "m", Path("a.model"), service=Path("s.py"), force=True, check=False)
    assert read(["--model", "a=m", "--shape", "x=0,3"]).shapes == {"x": (None, 3)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the model: --model NAME=PATH, or --model-name NAME --model-path PATH"),
        (["--model-name", "a"], "name the model"),
        (["--model", "a=b", "--model-path", "c"], "give one or the other"),
        (["--model", "a.zip"], "--model 'a.zip' is not NAME=PATH"),
        (["--model", "a/b=x"], "'a/b' cannot be a model's name"),
        (["--model", "a=b", "--frobnicate"], "unrecognized arguments: --frobnicate; try `mms_export --help`"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(arguments)
    assert message in caught.value.message
    assert mms_export(*arguments) == 2
    assert capsys.readouterr().err == f"mms_export: {caught.value.message}\n"


def test_the_manual_s_example_names_the_cat(here: Path) -> None:
    imagenet.build(here / "trained.zip")
    (here / "models").mkdir()
    with zipfile.ZipFile(here / "trained.zip") as file:
        file.extractall(here / "trained")
    for name in ("signature.json", "synset.txt"):
        (here / "trained" / name).rename(here / name)
    arguments = ["--model", "resnet-18=trained", "--signature", "signature.json", "--synset", "synset.txt"]
    assert mms_export(*arguments, "--export-path", "models") == 0
    imagenet.cat(here / "cat.jpg")
    with serving("--models", "resnet-18=models/resnet-18.zip", folder=here, command=MMS) as server:
        files = {"input0": ("white-sleeping-kitten.jpg", (here / "cat.jpg").read_bytes(), "image/jpeg")}
        reply = httpx.post(f"{server.url}/resnet-18/predict", files=files, timeout=60)
        best = reply.json()["prediction"][0][0]
        assert best["class"].endswith("cat")


def test_an_archive_over_itself_needs_force(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "models").mkdir()
    two_pictures(here / "models" / "net.zip")
    arguments = ["--model", "net=models/net.zip", "--export-path", "models"]
    assert mms_export(*arguments) == 2
    assert "models/net.zip is there already; write over it with --force" in capsys.readouterr().err
    assert mms_export(*arguments, "--force") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"wrote {here}/models/net.zip, mms archive, ")


def test_the_later_form_packs_the_folder_with_its_service(here: Path) -> None:
    colours(here / "c.zip")
    (here / "mine.py").write_text(SERVICE)
    with zipfile.ZipFile(here / "c.zip") as file:
        file.extractall(here / "c")
    assert mms_export("--model-name", "net", "--model-path", "c", "--service-file-path", "mine.py") == 0
    with zipfile.ZipFile(here / "net.model") as file:
        assert file.namelist() == [
            *("MANIFEST.json", "c-0000.params", "c-symbol.json", "mine.py", "signature.json", "synset.txt")
        ]
        assert json.loads(file.read("MANIFEST.json"))["Model"]["Service"] == "mine.py"
    with serving("--models", "net=net.model", folder=here, command=MMS) as server:
        assert server.table[1].split()[:3] == ["net", "1", "service"]


def test_a_failure_is_one_sentence_and_exit_code_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colours(here / "c.zip")
    np.savetxt(here / "synset.txt", [1.0])
    assert mms_export("--model", "net=c.zip", "--synset", "synset.txt") == 1
    error = capsys.readouterr().err
    assert error.startswith("mms_export: synset.txt has 1 labels, and the output 'softmax' has 6; expected one label")
    assert error.count("\n") == 1
    assert not (here / "net.zip").exists()
