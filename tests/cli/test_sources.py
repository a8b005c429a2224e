from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forecastle.cli import app, sources
from forecastle.cluster.specs import ModelSpec, ServerOptions
from forecastle.errors import UsageError


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parsed(*arguments: str) -> dict[str, Any]:
    """What ``forecastle serve`` is called with for these arguments, in this environment and folder."""
    _, bound, _ = app.parse_args(["serve", *arguments], exit_on_error=False, print_error=False)
    bound.apply_defaults()
    return bound.arguments


def test_a_flag_wins_over_the_environment_it_over_the_file_it_over_the_default(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    assert parsed()["batch_size"] == -1
    (folder / "forecastle.toml").write_text("batch_size = 3\n")
    assert parsed()["batch_size"] == 3
    monkeypatch.setenv("FORECASTLE_BATCH_SIZE", "4")
    assert parsed()["batch_size"] == 4
    assert parsed("--batch-size", "5")["batch_size"] == 5
    assert parsed("--batch-size", "-1")["batch_size"] == -1


def test_every_option_is_a_flag_a_variable_and_a_key_of_the_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    needs = folder / "r.txt"
    needs.touch()
    texts = {
        "host": "::1", "port": "1", "management_host": "::2", "requirements": "a=r.txt", "engine": "onnx",
        "management_port": "2", "replicas": "a=2", "batch_size": "3", "batch_delay": "2ms",
        "timeout": "3s", "max_body": "4kB", "log_level": "debug", "drain_timeout": "5", "start_timeout": "6m",
        "queue_size": "7", "cache_dir": "there", "model_root": "here", "multi_model": "true", "log_file": "l.log",
        "log_rotation_time": "2 H", "log_format": "json", "metrics_write_to": "csv",
        "log_batches": "true", "api_title": "T", "api_version": "2", "cluster": "c", "store": "s.db",
    }  # fmt: skip
    wanted = {
        "host": "::1", "port": 1, "management_host": "::2", "requirements": [("a", str(needs))], "engine": "onnx",
        "management_port": 2, "replicas": [("a", 2)], "batch_size": 3, "batch_delay": 0.002,
        "timeout": 3.0, "max_body": 4000, "log_level": "debug", "drain_timeout": 5.0, "start_timeout": 360.0,
        "queue_size": 7, "cache_dir": Path("there"), "model_root": Path("here"), "multi_model": True,
        "log_file": Path("l.log"), "log_rotation_time": "2 H", "log_format": "json", "metrics_write_to": "csv",
        "log_batches": True, "api_title": "T", "api_version": "2", "cluster": "c", "store": "s.db",
    }  # fmt: skip
    assert set(wanted) == set(ServerOptions.__struct_fields__)

    def options(*arguments: str) -> dict[str, Any]:
        return {key: value for key, value in parsed(*arguments).items() if key in wanted}

    flags = [word for key, text in texts.items() for word in (f"--{key.replace('_', '-')}", text)]
    assert options(*flags) == wanted
    file = folder / "other.toml"
    file.write_text("".join(f'{key} = "{text}"\n' for key, text in texts.items()))
    assert options("-c", str(file)) == wanted
    for key, text in texts.items():
        monkeypatch.setenv(f"FORECASTLE_{key.upper()}", text)
    assert options() == wanted


def test_the_environment_may_name_models_and_the_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "other.toml").write_text("port = 9\n")
    monkeypatch.setenv("FORECASTLE_MODELS", "a=x.py b=y.onnx")
    monkeypatch.setenv("FORECASTLE_CONFIG", "other.toml")
    assert parsed()["models"] == ("a=x.py", "b=y.onnx")
    assert parsed()["port"] == 9


@pytest.mark.parametrize("value", ["", " ", "tcp://10.0.0.1:8080"])
def test_an_empty_variable_or_the_address_of_a_kubernetes_service_is_no_setting(
    monkeypatch: pytest.MonkeyPatch, folder: Path, value: str
) -> None:
    (folder / "forecastle.toml").write_text("port = 9\n")
    monkeypatch.setenv("FORECASTLE_PORT", value)
    monkeypatch.setenv("FORECASTLE_PORT_8080_TCP", "tcp://10.0.0.1:8080")
    monkeypatch.setenv("FORECASTLE_SERVICE_HOST", "10.0.0.1")
    assert parsed()["port"] == 9


def test_replicas_in_the_file_are_one_number_or_a_table(folder: Path) -> None:
    (folder / "forecastle.toml").write_text("replicas = 2\n")
    assert parsed()["replicas"] == [("*", 2)]
    (folder / "forecastle.toml").write_text("[replicas]\na = 2\nb = 3\n")
    assert parsed()["replicas"] == [("a", 2), ("b", 3)]


@pytest.mark.parametrize(
    ("arguments", "environment", "text", "message"),
    [
        (["--port", "x"], {}, "", "--port: 'x' is not a port: expected a whole number"),
        (["--max-body", "much"], {}, "", "--max-body: 'much' is not a size"),
        (["--replicas", "a=2", "--replicas", "b="], {}, "", "--replicas: '' is not a count"),
        (["--replicas", "a b=1"], {}, "", "--replicas: 'a' is not a count"),
        ([], {"FORECASTLE_TIMEOUT": "0"}, "", "FORECASTLE_TIMEOUT: '0' is no time at all"),
        ([], {}, "port = 80.5", "port in forecastle.toml: '80.5' is not a port"),
        ([], {}, "port = true", "port in forecastle.toml: 'true' is not a port"),
        ([], {}, "prt = 1", "forecastle.toml: there is no setting 'prt'; did you mean 'port'?"),
        ([], {}, "batch-size = 1", "there is no setting 'batch-size'; did you mean 'batch_size'?"),
        ([], {}, "zzz = 1", "there is no setting 'zzz'; known are host, port"),
        ([], {}, "port = ", "the configuration file forecastle.toml is not valid TOML: "),
        (["-c", "gone.toml"], {}, "", "the configuration file gone.toml does not exist"),
        (["-c", "."], {}, "", "the configuration file . cannot be read: Is a directory"),
        ([], {"FORECASTLE_CONFIG": "gone.toml"}, "", "the configuration file gone.toml does not exist"),
    ],
)
def test_a_wrong_setting_is_refused_by_the_name_it_was_given_under(
    *,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    arguments: list[str],
    environment: dict[str, str],
    text: str,
    message: str,
) -> None:
    (folder / "forecastle.toml").write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as caught:
        parsed(*arguments)
    assert message in caught.value.message


def test_a_file_that_is_not_utf_8_is_refused(folder: Path) -> None:
    (folder / "forecastle.toml").write_bytes(b'host = "\xff"')
    with pytest.raises(UsageError, match="it is not UTF-8 text"):
        parsed()


def test_models_of_the_file_have_settings_of_their_own(folder: Path) -> None:
    file = folder / "conf" / "forecastle.toml"
    file.parent.mkdir()
    (file.parent / "y.onnx").touch()
    file.write_text(
        '[models]\na = "acme.ship"\n'
        '[models.b]\nsource = "y.onnx"\nversion = "2"\nreplicas = 3\nbatch_size = 1\nbatch_delay = "1ms"\ntimeout = 2\n'
        'queue_size = 4\nstart_timeout = "1m"\nrequired = false\n'
    )
    assert sources.models(file, ServerOptions(batch_size=8)) == [
        ModelSpec("a", "acme.ship", batch_size=8),
        ModelSpec("b", str(file.parent / "y.onnx"), "2", 3, 1, 0.001, 2.0, 4, 60.0, required=False),
    ]
    assert sources.models(file, ServerOptions(replicas={"b": 7}))[1].replicas == 7
    assert sources.models(file, ServerOptions(replicas={"*": 7}))[1].replicas == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = 3", "models in .* must be a table of NAME = SOURCE"),
        ("[models]\na = 3", "models.a in .* must be a source in quotes, or a table"),
        ('[models]\na = ""', "models.a in .* must be a source in quotes"),
        ("[models.a]\nreplicas = 2", "models.a in .* must be a source in quotes, or a table"),
        ('[models]\n"a b" = "x.py"', "'a b' cannot be a model's name"),
        ('[models.a]\nsource = "x"\nreplica = 2', r"table \[models.a\]: there is no setting 'replica'; did you mean"),
        ('[models.a]\nsource = "x"\nreplicas = 0', r"models.a.replicas in .*: '0' is not a count"),
        ('[models.a]\nsource = "x"\nrequired = "no"', "models.a.required in .* must be true or false; found 'no'"),
    ],
)
def test_a_wrong_model_of_the_file_is_refused_by_name(folder: Path, text: str, message: str) -> None:
    file = folder / "forecastle.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        sources.models(file, ServerOptions())


def test_requirements_of_a_models_table_are_lines_or_a_file_beside_the_file_of_settings(folder: Path) -> None:
    (folder / "there").mkdir()
    file = folder / "there" / "f.toml"
    needs = folder / "there" / "r.txt"
    needs.touch()
    file.write_text(
        '[models.a]\nsource = "a.py"\nrequirements = ["numpy<2", "six"]\n'
        '[models.b]\nsource = "b.py"\nrequirements = "r.txt"\n[models]\nc = "c.py"\n'
    )
    found = {spec.name: spec.requirements for spec in sources.models(file, ServerOptions(cache_dir=folder))}
    assert found == {"a": ("numpy<2", "six"), "b": (f"-r {needs}",), "c": ()}
    named = ServerOptions(cache_dir=folder, requirements={"a": "/other.txt", "*": "/all.txt"})
    found = {spec.name: spec.requirements for spec in sources.models(file, named)}
    assert found == {"a": ("-r /other.txt",), "b": (f"-r {needs}",), "c": ("-r /all.txt",)}


@pytest.mark.parametrize("value", ['"gone.txt"', "[]", "[1]", "3", '[""]'])
def test_requirements_that_are_none_are_refused_with_what_is_expected(folder: Path, value: str) -> None:
    file = folder / "f.toml"
    file.write_text(f'[models.a]\nsource = "a.py"\nrequirements = {value}\n')
    with pytest.raises(UsageError, match=r'models\.a\.requirements in .* must be a list such as \["numpy<2"\], or'):
        sources.models(file, ServerOptions(cache_dir=folder))
