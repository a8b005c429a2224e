"""``make test-tensorflow`` runs these, in an environment of their own: TensorFlow weighs more than all the rest."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadArtifact, BadInput
from forecastle.hooks.resolve import Hooks
from forecastle.media import NPY
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model
from runtimes.test_tensor import ask, raw

if find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed: make test-tensorflow", allow_module_level=True)
import tensorflow as tf

ROWS = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)


class Net(tf.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        self.weights = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3) / 10)

    def scores(self, flower: Any) -> Any:
        return {"scores": flower @ self.weights, "label": tf.strings.as_string(tf.argmax(flower @ self.weights, 1))}


def saved(path: Path, *, signatures: bool = True) -> Path:
    net = Net()
    function = tf.function(net.scores, input_signature=[tf.TensorSpec((None, 4), tf.float32, "flower")])
    tf.saved_model.save(net, str(path), {"serving_default": function} if signatures else None)
    return path


def served(path: Path) -> Hooks:
    artifact = open_artifact(str(path), cache=path.parent / "cache")
    assert (artifact.kind, artifact.runtime) == ("saved model", "tensorflow")
    return load_model(artifact)[0]


def test_a_saved_model_answers_by_its_signature_texts_among_its_outputs(tmp_path: Path) -> None:
    hooks = served(saved(tmp_path / "net"))
    expected = ROWS @ (np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
    npy = io.BytesIO()
    np.save(npy, ROWS)
    for sent in (raw(ROWS.tolist()), raw(npy.getvalue(), NPY), raw({"flower": ROWS.tolist()})):
        labels, scores = ask(hooks, sent)[0]
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
        assert labels == [str(index) for index in expected.argmax(1)]
    with pytest.raises(BadInput, match=r"flower has shape \(3\)"):
        ask(hooks, raw([1, 2, 3]))
    jobs = [Job(str(index), raw(row.tolist()), "*/*", 1e12) for index, row in enumerate(ROWS)]
    for answer, row in zip(Executor(hooks).answer(jobs), expected, strict=True):
        assert isinstance(answer, tuple)
        np.testing.assert_allclose(json.loads(answer[0])[1], row, rtol=1e-5)


def test_a_saved_model_with_the_state_of_its_optimizer_is_read(tmp_path: Path) -> None:
    net = Net()
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build([net.weights])
    net.optimizer = optimizer
    function = tf.function(net.scores, input_signature=[tf.TensorSpec((None, 4), tf.float32, "flower")])
    tf.saved_model.save(net, str(tmp_path / "net"), {"serving_default": function})
    assert len(ask(served(tmp_path / "net"), raw(ROWS.tolist()))[0]) == 2


def test_one_without_a_signature_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match="has no signature 'serving_default'"):
        served(saved(tmp_path / "net", signatures=False))
