from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.process import FORECASTLE
from cli.test_plugins import DATA
from forecastle.check.sagemaker import CHECKS, Subject, run
from forecastle.check.target import started
from forecastle.errors import SourceNotFound, UsageError
from forecastle.images.sagemaker import Image, write
from images.dockerfile import Built, follow
from models.builders import make_onnx
from wheels import wheels

HOOKS = "import helper\n\n\ndef predict_fn(data, model):\n    return helper.FACTOR * data\n"


def image(source: str | None, folder: Path, name: str = "m", **more: object) -> str:
    """Write an image's folder, and return its Dockerfile."""
    made = Image(name, source, wheels=tuple(wheels().glob("*.whl")), **more)  # type: ignore[arg-type]
    return write(made, folder / "image", folder / "cache").read_text()


def checked(built: Built, body: bytes) -> dict[str, str]:
    environment = {**built.environment, "PWD": str(built.folder)}
    command = ["sh", "-c", f'cd "{built.folder}" && exec "$@"', "sh", *built.command, "--management-port", "0"]
    with started(command, environment, 60) as server:
        return {finding.name: finding.verdict for finding in run(Subject(server, body, given=True))}


def test_an_image_of_a_hook_file_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "doubling.py").write_text(HOOKS)
    (tmp_path / "src" / "helper.py").write_text("FACTOR = 2\n")
    text = image(str(tmp_path / "src" / "doubling.py"), tmp_path, "doubling")
    assert 'ENTRYPOINT ["forecastle"]\nCMD ["serve"]\n' in text
    assert "USER" not in text
    built = follow(tmp_path / "image" / "Dockerfile", tmp_path / "root", sys.executable)
    assert built.labels["com.amazonaws.sagemaker.capabilities.accept-bind-to-port"] == "true"
    found = checked(built, b"[1, 2]")
    assert {name for name, verdict in found.items() if verdict != "pass"} == {"streaming"}
    assert len(found) == len(CHECKS)


def test_an_image_of_a_project_serves_its_entry_point_and_of_none_what_the_platform_mounts(tmp_path: Path) -> None:
    shutil.copytree(DATA / "shipping_forecast", tmp_path / "shipping")
    with (tmp_path / "shipping" / "pyproject.toml").open("a") as file:
        file.write("")
    image(str(tmp_path / "shipping"), tmp_path, "shipping")
    built = follow(tmp_path / "image" / "Dockerfile", tmp_path / "root", sys.executable)
    found = checked(built, b'{"location": "Fair Isle"}')
    assert found["invocations"] == "pass"
    assert found["stop"] == "pass"


def test_requirements_of_a_model_are_installed_in_the_image_and_a_users_number_is_kept(tmp_path: Path) -> None:
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text("import six\n\n\ndef predict_fn(data, model):\n    return six.__version__\n")
    (code / "requirements.txt").write_text("six==1.16.0\n")
    (code / "__pycache__").mkdir()
    text = image(str(tmp_path / "model"), tmp_path, user="1000")
    assert "RUN pip install --root-user-action=ignore -r m/code/requirements.txt\n" in text
    assert "USER 1000\n" in text
    assert not (tmp_path / "image" / "models" / "m" / "code" / "__pycache__").exists()
    built = follow(tmp_path / "image" / "Dockerfile", tmp_path / "root", sys.executable)
    assert checked(built, b"1")["invocations"] == "pass"


def test_a_models_runtime_is_an_extra_and_its_system_libraries_are_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(make_onnx())
    (tmp_path / "unrelated").touch()
    text = image(str(tmp_path / "m.onnx"), tmp_path)
    assert "apt-get" not in text
    assert "forecastle-0.1.0-py3-none-any.whl[onnx]\n" in (tmp_path / "image" / "requirements.txt").read_text()
    assert sorted(path.name for path in (tmp_path / "image" / "models" / "m").iterdir()) == ["m.onnx"]
    text = write(Image("any", extras=("lightgbm", "onnx")), tmp_path / "other", tmp_path).read_text()
    assert "apt-get install -y --no-install-recommends libgomp1 " in text
    assert (tmp_path / "other" / "requirements.txt").read_text().startswith("forecastle[lightgbm,onnx]==")
    assert "COPY models" not in text


def test_what_is_there_is_not_written_over_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").touch()
    with pytest.raises(UsageError, match="full is not empty; choose another folder, or write over it with --force"):
        write(Image("m"), tmp_path / "full", tmp_path)
    assert (tmp_path / "full" / "precious").exists()
    write(Image("m"), tmp_path / "full", tmp_path, force=True)
    assert not (tmp_path / "full" / "precious").exists()


def test_what_cannot_be_put_into_an_image_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="json is a module of this machine; give the folder of its project"):
        write(Image("m", "json"), tmp_path / "image", tmp_path)
    with pytest.raises(SourceNotFound, match=r"the wheel gone\.whl is not there"):
        write(Image("m", wheels=(Path("gone.whl"),)), tmp_path / "image2", tmp_path)


def test_without_an_engine_the_command_says_how_to_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.py").write_text("def predict_fn(data, model):\n    return data\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    command = [FORECASTLE[0], "build", "sagemaker", "m=m.py", "--tag", "mine:1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "wrote image/Dockerfile\n"
        "no Docker engine answers here; build the image where one does: docker build --tag mine:1 image\n"
    )


def test_the_check_of_a_built_image_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def predict_fn(data, model):\n    return data\n")
    command = [FORECASTLE[0], "build", "sagemaker", "m=m.py", "--no-check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("wrote image/Dockerfile\n"), done.stderr
