from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.cluster.specs import (
    ModelSpec,
    ServerOptions,
    default_cache_dir,
    distinct,
    parse_model,
    valid_name,
)
from forecastle.errors import UsageError


@pytest.mark.parametrize("name", ["a", "resnet-18", "0", "net.v2_x", "ping", "A" * 128])
def test_a_name_of_letters_digits_dots_and_dashes_is_taken(name: str) -> None:
    assert valid_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "_a", "a b", "a/b", "naïve", "a\n", "a%20b", "A" * 129])
def test_any_other_name_is_refused_and_shown(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a model's name") as caught:
        valid_name(name)
    assert repr(name) in caught.value.message


@pytest.mark.parametrize(
    ("text", "name", "source"),
    [
        ("ship=shipping.py", "ship", "shipping.py"),
        ("shipping.py", "shipping", "shipping.py"),
        ("iris.joblib", "iris", "iris.joblib"),
        ("iris.skops", "iris", "iris.skops"),
        ("model.tar.gz", "model", "model.tar.gz"),
        ("resnet-18=https://host/y.zip?a=b", "resnet-18", "https://host/y.zip?a=b"),
        ("https://host/some%2Dnet.zip?a=b", "some-net", "https://host/some%2Dnet.zip?a=b"),
        ("file://models/resnet-18", "resnet-18", "file://models/resnet-18"),
        ("models/resnet-18/", "resnet-18", "models/resnet-18/"),
        ("acme.models.ship", "ship", "acme.models.ship"),
        ("net.onnx", "net", "net.onnx"),
        ("a=b=c", "a", "b=c"),
    ],
)
def test_a_model_is_split_at_its_first_equals_sign_or_named_after_its_source(text: str, name: str, source: str) -> None:
    assert parse_model(text) == (name, source)


@pytest.mark.parametrize("text", ["", " ", "=x.py", "x=", "a b=x.py", "../", "my model.py", "http://host/?a=b"])
def test_a_model_that_cannot_be_named_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_model(text)


def test_two_models_of_one_name_are_refused_with_both_sources() -> None:
    specs = [ModelSpec("a", "one.py"), ModelSpec("b", "one.py"), ModelSpec("a", "two.py")]
    with pytest.raises(UsageError, match=r"called 'a' \(one\.py and two\.py\)"):
        distinct(specs)
    assert distinct(specs[:2]) == specs[:2]


def test_a_spec_takes_the_options_and_its_own_replica_count() -> None:
    options = ServerOptions(replicas={"a": 3, "*": 2}, batch_size=8, batch_delay=0.5, timeout=1.0, queue_size=5)
    assert options.spec("a", "x.py") == ModelSpec(
        "a", "x.py", replicas=3, batch_size=8, batch_delay=0.5, timeout=1.0, queue_size=5
    )
    assert options.spec("b", None).replicas == 2
    assert ServerOptions().spec("b", None).replicas == 1


def test_the_cache_lies_where_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "forecastle"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "forecastle"
