from __future__ import annotations

import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="no backend of Keras is installed: make test TORCH=torch==2.13.0")
os.environ.setdefault("KERAS_BACKEND", "torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import keras

from forecastle.errors import BadArtifact, BadInput
from forecastle.hooks.resolve import Hooks
from forecastle.media import CSV, NPY
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model
from runtimes.test_tensor import ask, raw

# Keras's variables, to numpy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

ROWS = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,), name="flower"), keras.layers.Dense(8, "relu"), keras.layers.Dense(3)])
    model.compile(loss="mse")
    model.fit(ROWS, np.eye(5, 3), epochs=2, verbose=0)
    return model


def served(path: Path) -> Hooks:
    hooks, info = load_model(open_artifact(str(path), cache=path.parent / "cache"))
    assert info.runtime == "keras"
    assert info.signature is not None
    assert info.signature.inputs[0].shape == (None, 4)
    return hooks


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "nameless"])
def test_a_model_answers_as_keras_does_in_json_csv_and_npy(model: Any, tmp_path: Path, name: str) -> None:
    model.save(tmp_path / (name if "." in name else "m.keras"))
    if name == "nameless":
        (tmp_path / "m.keras").rename(tmp_path / name)
    hooks = served(tmp_path / name)
    expected = model.predict_on_batch(ROWS)
    csv = "\n".join(",".join(map(str, row)) for row in ROWS.tolist()).encode()
    npy = io.BytesIO()
    np.save(npy, ROWS)
    for sent in (raw(ROWS.tolist()), raw(npy.getvalue(), NPY), raw(csv, CSV)):
        np.testing.assert_allclose(ask(hooks, sent)[0][0], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.load(io.BytesIO(ask(hooks, raw(ROWS.tolist()), NPY)[0])), expected, rtol=1e-5)
    with pytest.raises(BadInput, match=r"has shape \(3\); expected \(any, 4\)"):
        ask(hooks, raw([1, 2, 3]))


def test_a_batch_gives_what_each_row_gets_alone(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "m.keras")
    jobs = [Job(str(index), raw(row.tolist()), "*/*", 1e12) for index, row in enumerate(ROWS)]
    for answer, scores in zip(
        Executor(served(tmp_path / "m.keras")).answer(jobs), model.predict_on_batch(ROWS), strict=True
    ):
        assert isinstance(answer, tuple)
        np.testing.assert_allclose(json.loads(answer[0])[0], scores, rtol=1e-4, atol=1e-6)


def test_a_layer_with_python_code_in_it_is_refused(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x: x * 2)])
    model.save(tmp_path / "m.keras")
    with pytest.raises(BadArtifact, match=r"m\.keras cannot be loaded by Keras: .*ambda"):
        served(tmp_path / "m.keras")


def test_a_file_of_weights_alone_is_refused_with_kerass_reason(model: Any, tmp_path: Path) -> None:
    model.save_weights(tmp_path / "m.weights.h5")
    with pytest.raises(BadArtifact, match=r"m\.weights\.h5 cannot be loaded by Keras: "):
        served(tmp_path / "m.weights.h5")
