from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from forecastle.errors import BadArtifact, BadInput, LoadFailed, UnknownArtifact
from forecastle.hooks.resolve import Hooks
from forecastle.media import CSV, NPY
from forecastle.models.artifact import open_artifact
from forecastle.replica.loading import load_model
from runtimes.test_tensor import ask, raw

FLOWERS, SPECIES = load_iris(return_X_y=True)
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture(scope="module")
def classifier() -> Any:
    model = make_pipeline(StandardScaler(), LogisticRegression())
    names = np.array(["setosa", "versicolor", "virginica"])
    model.fit(FLOWERS, names[SPECIES])
    model[0].feature_names_in_ = np.array(COLUMNS, object)
    return model


def hooks(path: Path, tmp_path: Path) -> Hooks:
    return load_model(open_artifact(str(path), cache=tmp_path / "cache"))[0]


WRITERS = {
    "m.joblib": joblib.dump,
    "small.joblib": lambda model, path: joblib.dump(model, path, compress=3),
    "m.pkl": lambda model, path: Path(path).write_bytes(pickle.dumps(model)),
    "nameless": lambda model, path: Path(path).write_bytes(pickle.dumps(model)),
    "m.skops": skops.io.dump,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_model_answers_as_it_does_alone_whatever_file_it_came_in(classifier: Any, tmp_path: Path, name: str) -> None:
    WRITERS[name](classifier, tmp_path / name)
    served = hooks(tmp_path / name, tmp_path)
    predictions, probabilities = ask(served, raw(FLOWERS[::30].tolist()))[0]
    assert predictions == classifier.predict(FLOWERS[::30]).tolist()
    np.testing.assert_allclose(probabilities, classifier.predict_proba(FLOWERS[::30]), rtol=1e-6)
    prediction, probability = ask(served, raw(FLOWERS[0].tolist()))[0]
    assert prediction == "setosa"
    assert sum(probability) == pytest.approx(1)


def test_records_come_by_column_in_any_order(classifier: Any, tmp_path: Path) -> None:
    joblib.dump(classifier, tmp_path / "m.joblib")
    served = hooks(tmp_path / "m.joblib", tmp_path)
    record = dict(reversed(list(zip(COLUMNS, FLOWERS[120].tolist(), strict=True))))
    assert ask(served, raw(record))[0][0] == "virginica"
    assert ask(served, raw([record, record]))[0][0] == ["virginica", "virginica"]
    with pytest.raises(BadInput, match=r"record 1 lacks 'sepal width'; expected sepal length"):
        ask(served, raw([record, {key: value for key, value in record.items() if key != "sepal width"}]))
    with pytest.raises(BadInput, match="the record has 'colour', which is no column"):
        ask(served, raw({**record, "colour": 1}))


def test_a_regression_takes_and_gives_csv_and_npy(tmp_path: Path) -> None:
    model = LinearRegression().fit(FLOWERS[:, :3], FLOWERS[:, 3])
    joblib.dump(model, tmp_path / "m.joblib")
    served = hooks(tmp_path / "m.joblib", tmp_path)
    expected = model.predict(FLOWERS[:2, :3])
    body, _ = ask(served, raw("\n".join(",".join(map(str, row)) for row in FLOWERS[:2, :3]).encode(), CSV), accept=CSV)
    np.testing.assert_allclose([float(line) for line in body.decode().split()], expected)
    buffer = io.BytesIO()
    np.save(buffer, FLOWERS[:2, :3])
    body, _ = ask(served, raw(buffer.getvalue(), NPY), accept=NPY)
    np.testing.assert_allclose(np.load(io.BytesIO(body)), expected)


def test_a_type_that_skops_does_not_trust_is_refused_by_name(tmp_path: Path) -> None:
    model = make_pipeline(FunctionTransformer(json.dumps), LinearRegression())
    skops.io.dump(model, tmp_path / "m.skops")
    with pytest.raises(LoadFailed, match=r"skops does not trust.*json"):
        hooks(tmp_path / "m.skops", tmp_path)


def test_what_is_no_model_is_refused_with_what_it_is(tmp_path: Path) -> None:
    joblib.dump({"a": 1}, tmp_path / "m.joblib")
    with pytest.raises(BadArtifact, match=r"m\.joblib holds a dict, which has no predict"):
        hooks(tmp_path / "m.joblib", tmp_path)


def test_a_broken_file_is_refused(classifier: Any, tmp_path: Path) -> None:
    joblib.dump(classifier, tmp_path / "m.joblib")
    data = (tmp_path / "m.joblib").read_bytes()
    (tmp_path / "m.joblib").write_bytes(data[: len(data) // 2])
    with pytest.raises(BadArtifact, match="cannot be read"):
        hooks(tmp_path / "m.joblib", tmp_path)


def test_pytorchs_own_pickles_are_none_of_scikit_learn(tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + b"\x80\x02M\xe9\x03.")
    with pytest.raises(UnknownArtifact):
        open_artifact(str(tmp_path / "m.pth"), cache=tmp_path)


def test_a_script_that_only_loads_the_model_has_the_runtimes_other_hooks(classifier: Any, tmp_path: Path) -> None:
    joblib.dump(classifier, tmp_path / "model.joblib")
    (tmp_path / "code").mkdir()
    script = "import joblib\ndef model_fn(model_dir):\n    return joblib.load(model_dir + '/model.joblib')\n"
    (tmp_path / "code" / "inference.py").write_text(script)
    served, info = load_model(open_artifact(str(tmp_path), cache=tmp_path / "cache"))
    assert info.together
    assert ask(served, raw(FLOWERS[:1].tolist()))[0][0] == ["setosa"]


def test_a_script_that_makes_what_the_runtime_does_not_know_is_served_by_its_own_hooks(
    classifier: Any, tmp_path: Path
) -> None:
    joblib.dump(classifier, tmp_path / "model.joblib")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").write_text("def model_fn(model_dir):\n    return sum\n")
    served, info = load_model(open_artifact(str(tmp_path), cache=tmp_path / "cache"))
    assert not info.together
    assert ask(served, raw([1, 2, 3]))[0] == 6


def test_a_missing_feature_is_null_where_the_model_takes_one_and_the_clients_fault_elsewhere(
    classifier: Any, tmp_path: Path
) -> None:
    trees = HistGradientBoostingClassifier(max_iter=5).fit(FLOWERS, SPECIES)
    joblib.dump(trees, tmp_path / "trees.joblib")
    row = [*FLOWERS[0, :3].tolist(), None]
    answer = ask(hooks(tmp_path / "trees.joblib", tmp_path), raw(row))[0]
    np.testing.assert_allclose(answer[1], trees.predict_proba([[*FLOWERS[0, :3], np.nan]])[0], rtol=1e-6)
    joblib.dump(classifier, tmp_path / "lines.joblib")
    with pytest.raises(BadInput, match=r"X\[3\] is null; expected a number"):
        ask(hooks(tmp_path / "lines.joblib", tmp_path), raw(row))
