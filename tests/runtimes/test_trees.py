"""XGBoost's and LightGBM's models, trained here: both take rows of features and know what to do with missing ones."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import load_breast_cancer, load_iris

from forecastle.errors import BadArtifact, BadInput
from forecastle.hooks.resolve import Hooks
from forecastle.media import CSV, JSON, NPY
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model
from runtimes.test_tensor import ask, raw

TUMOURS, MALIGNANT = load_breast_cancer(return_X_y=True)
FLOWERS, SPECIES = load_iris(return_X_y=True)
NAMES = [f"measure_{index}" for index in range(30)]
TREES = {"num_threads": 1, "verbose": -1}


class Trained(NamedTuple):
    """A model, how it is saved, and what it says itself."""

    file: str
    kind: str
    save: Callable[[str], Any]
    predict: Callable[[Any], Any]


def xgboost(file: str, objective: str, rows: Any, labels: Any, **more: Any) -> Trained:
    data = xgb.DMatrix(rows, labels, feature_names=NAMES if rows.shape[1] == 30 else None)
    booster = xgb.train({"objective": objective, "nthread": 1, **more}, data, 5)
    return Trained(file, "xgboost", booster.save_model, lambda x: booster.inplace_predict(x, validate_features=False))


def lightgbm(objective: str, rows: Any, labels: Any, **more: Any) -> Trained:
    data = lgb.Dataset(rows, labels, feature_name=NAMES if rows.shape[1] == 30 else "auto")
    booster = lgb.train({"objective": objective, **TREES, **more}, data, 5)
    return Trained("m.txt", "lightgbm", booster.save_model, booster.predict)


BINARY = {
    "xgboost json": lambda: xgboost("m.json", "binary:logistic", TUMOURS, MALIGNANT),
    "xgboost ubj": lambda: xgboost("m.ubj", "binary:logistic", TUMOURS, MALIGNANT),
    "lightgbm": lambda: lightgbm("binary", TUMOURS, MALIGNANT),
}
CLASSES = {
    "xgboost": lambda: xgboost("xgboost-model.json", "multi:softprob", FLOWERS, SPECIES, num_class=3),
    "lightgbm": lambda: lightgbm("multiclass", FLOWERS, SPECIES, num_class=3),
}


def served(trained: Trained, tmp_path: Path) -> Hooks:
    trained.save(str(tmp_path / trained.file))
    (tmp_path / trained.file).rename(tmp_path / "model")  # its name says nothing
    artifact = open_artifact(str(tmp_path / "model"), cache=tmp_path / "cache")
    assert artifact.kind == trained.kind
    return load_model(artifact)[0]


@pytest.mark.parametrize("make", BINARY.values(), ids=list(BINARY))
def test_rows_are_predicted_as_the_library_itself_does_whatever_they_come_as(
    make: Callable[[], Trained], tmp_path: Path
) -> None:
    trained = make()
    hooks = served(trained, tmp_path)
    rows = TUMOURS[::100]
    expected = trained.predict(rows)
    npy = io.BytesIO()
    np.save(npy, rows)
    csv = "\n".join(",".join(map(repr, row)) for row in rows.tolist()).encode()
    for sent in (raw(rows.tolist()), raw(npy.getvalue(), NPY), raw(csv, CSV)):
        ((prediction,), content_type) = ask(hooks, sent)
        assert content_type == JSON
        np.testing.assert_allclose(prediction, expected, rtol=1e-5)
    body, content_type = ask(hooks, raw(rows.tolist()), NPY)
    assert content_type == NPY
    np.testing.assert_allclose(np.load(io.BytesIO(body)), expected, rtol=1e-6)
    body, content_type = ask(hooks, raw(rows.tolist()), CSV)
    np.testing.assert_allclose(np.loadtxt(io.BytesIO(body)), expected, rtol=1e-6)
    record = dict(zip(NAMES, TUMOURS[0].tolist(), strict=True))
    np.testing.assert_allclose(ask(hooks, raw(record))[0], trained.predict(TUMOURS[:1]), rtol=1e-5)


@pytest.mark.parametrize("make", BINARY.values(), ids=list(BINARY))
def test_a_missing_feature_is_null_in_json_and_an_empty_cell_in_csv(
    make: Callable[[], Trained], tmp_path: Path
) -> None:
    trained = make()
    hooks = served(trained, tmp_path)
    row = TUMOURS[0].tolist()
    row[7] = row[20] = None
    holes = np.array(row, float)[None]
    cells = ",".join("" if value is None else repr(value) for value in row).encode()
    for sent in (raw(row), raw([row]), raw(cells, CSV)):
        np.testing.assert_allclose(np.ravel(ask(hooks, sent)[0]), trained.predict(holes), rtol=1e-5)


@pytest.mark.parametrize("make", CLASSES.values(), ids=list(CLASSES))
def test_several_classes_have_a_score_each_and_a_batch_gives_what_each_row_gets_alone(
    make: Callable[[], Trained], tmp_path: Path
) -> None:
    trained = make()
    hooks = served(trained, tmp_path)
    jobs = [Job(str(index), raw(row.tolist()), "*/*", 1e12) for index, row in enumerate(FLOWERS[::15])]
    answers = Executor(hooks).answer(jobs)
    expected = trained.predict(FLOWERS[::15])
    assert expected.shape == (10, 3)
    for answer, scores, row in zip(answers, expected, FLOWERS[::15], strict=True):
        assert isinstance(answer, tuple)
        np.testing.assert_allclose(json.loads(answer[0])[0], scores, rtol=1e-5)
        np.testing.assert_allclose(ask(hooks, raw(row.tolist()))[0][0], scores, rtol=1e-5)


@pytest.mark.parametrize("make", CLASSES.values(), ids=list(CLASSES))
def test_a_row_of_another_length_or_with_text_in_it_is_the_clients_fault(
    make: Callable[[], Trained], tmp_path: Path
) -> None:
    hooks = served(make(), tmp_path)
    with pytest.raises(BadInput, match=r"X has shape \(5\); expected \(any, 4\), or \(4\) for one record"):
        ask(hooks, raw([1, 2, 3, 4, 5]))
    with pytest.raises(BadInput, match=r"X\[1\] is 'wide'; expected a number"):
        ask(hooks, raw([1, "wide", 3, 4]))


def test_a_model_that_stopped_early_predicts_with_its_best_iteration(tmp_path: Path) -> None:
    model = xgb.XGBRegressor(n_estimators=40, early_stopping_rounds=2, learning_rate=1.0, n_jobs=1)
    model.fit(TUMOURS[:200], MALIGNANT[:200], eval_set=[(TUMOURS[200:], MALIGNANT[200:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    hooks = served(Trained("m.json", "xgboost", model.save_model, model.predict), tmp_path)
    np.testing.assert_allclose(ask(hooks, raw(TUMOURS[:3].tolist()))[0][0], model.predict(TUMOURS[:3]), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("m.json", b'{"learner":{"attributes":{}', "m.json cannot be loaded by XGBoost: "),
        ("m.txt", b"tree\nversion=v4\nnum_class=1\n", "m.txt cannot be loaded by LightGBM: "),
    ],
)
def test_a_damaged_file_is_refused_with_the_librarys_reason(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadArtifact, match=says):
        load_model(open_artifact(str(tmp_path / name), cache=tmp_path / "cache"))


def test_a_file_that_is_cut_off_is_refused_with_the_librarys_reason(tmp_path: Path) -> None:
    trained = BINARY["xgboost ubj"]()
    trained.save(str(tmp_path / "whole.ubj"))
    whole = (tmp_path / "whole.ubj").read_bytes()
    (tmp_path / "m.ubj").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadArtifact, match=r"m\.ubj cannot be loaded by XGBoost: "):
        load_model(open_artifact(str(tmp_path / "m.ubj"), cache=tmp_path / "cache"))


SCRIPTS = {
    "xgboost": "import xgboost\ndef model_fn(model_dir):\n    b = xgboost.Booster()\n"
    "    b.load_model(model_dir + '/m.json')\n    return b\n",
    "lightgbm": "import lightgbm\ndef model_fn(model_dir):\n"
    "    return lightgbm.Booster(model_file=model_dir + '/m.txt')\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_only_loads_the_model_itself_has_the_runtimes_other_hooks(tmp_path: Path, name: str) -> None:
    trained = BINARY["xgboost json" if name == "xgboost" else name]()
    trained.save(str(tmp_path / trained.file))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").write_text(SCRIPTS[name])
    hooks, info = load_model(open_artifact(str(tmp_path), cache=tmp_path / "cache"))
    assert info.runtime == name
    assert info.together
    np.testing.assert_allclose(ask(hooks, raw(TUMOURS[:2].tolist()))[0][0], trained.predict(TUMOURS[:2]), rtol=1e-5)
