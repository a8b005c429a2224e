from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forecastle.cluster.specs import ModelSpec
from forecastle.errors import UsageError
from mms.command import main, read


def test_the_seed_s_command_line_is_read() -> None:
    options, specs, _ = read(
        [
            "--models",
            "resnet-18=https://host/resnet-18.zip?raw=true",
            "--process",
            "mxnet_vision_service",
            "--port",
            "99",
        ]
    )
    assert (options.host, options.port, options.management_port) == ("127.0.0.1", 99, 0)
    service = "forecastle.runtimes.service.classes:MXNetVisionService"
    assert specs == [ModelSpec("resnet-18", "https://host/resnet-18.zip?raw=true", service=service)]


def test_a_service_is_for_all_models_but_those_that_have_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    models = ["--models", "a=x.zip", "b=y.zip"]
    _, specs, _ = read([*models, "--process", "json.tool:A", "--service", "b=mine:B"])
    assert [spec.service for spec in specs] == ["json.tool:A", f"{tmp_path / 'mine.py'}:B"]
    _, specs, _ = read([*models, "--process", "b=mine.py"])
    assert [spec.service for spec in specs] == ["", str(tmp_path / "mine.py")]


def test_model_is_models_and_takes_several() -> None:
    _, specs, _ = read(["--model", "resnet-18=file://models/resnet-18", "vgg16=file://models/vgg16"])
    assert [(spec.name, spec.source) for spec in specs] == [
        ("resnet-18", "file://models/resnet-18"),
        ("vgg16", "file://models/vgg16"),
    ]


def test_flags_of_later_versions_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    options, _, _ = read(
        ["--models", "a=b.model", "--log-file", "x.log", "--log-rotation-time", "1", "H", "--log-level", "NOTSET",
         "--gpu", "0", "--metrics-write-to", "csv", "--host", "0.0.0.0"]
    )  # fmt: skip
    assert options.log_level == "debug"
    assert (options.log_file, options.log_rotation_time, options.metrics_write_to) == (Path("x.log"), "1 H", "csv")
    assert options.host == "0.0.0.0"
    assert "mms: --gpu has no effect here: models run on the CPU\n" in capsys.readouterr().err


def test_a_model_store_is_where_models_are_looked_for_first(tmp_path: Path) -> None:
    (tmp_path / "noop.mar").touch()
    models = ("a=noop.mar", "b=elsewhere.mar", "c=http://host/noop.mar")
    options, specs, _ = read(["--start", "--foreground", "--model-store", str(tmp_path), "--models", *models])
    assert options.model_root == tmp_path
    assert [spec.source for spec in specs] == [str(tmp_path / "noop.mar"), "elsewhere.mar", "http://host/noop.mar"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --models"),
        (["--models"], "expected at least one argument"),
        (["--models", "resnet-18.zip"], "'resnet-18.zip' is not NAME=PATH"),
        (["--models", "a/b=x.zip"], "'a/b' cannot be a model's name"),
        (["--models", "a=x.zip", "a=y.zip"], "two models are called 'a'"),
        (["--models", "a=x.zip", "--port", "http"], "'http' is not a port"),
        (["--models", "a=x.zip", "--process", "my_service"], "the service my_service: there is no file my_service.py"),
        (["--models", "a=x.zip", "--service", "my.py"], "the service my.py: there is no file at"),
        (["--models", "a=x.zip", "--process", "b=json"], "--process b=json: there is no model 'b' in --models"),
        (["--models", "a=x.zip", "--process", "json", "--process", "csv"], "--process csv: a service for all models"),
        (["--models", "a=x.zip", "--gen-api", "klingon"], "there is no client for 'klingon': choose one of bash, c, "),
        (["--models", "a=x.zip", "--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(arguments)
    assert message in caught.value.message
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error == f"mms: {caught.value.message}\n"


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "mms", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: mms ")
