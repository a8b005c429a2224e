from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forecastle
from forecastle import testing
from forecastle.errors import LoadFailed
from forecastle.media import CSV, JSON, NPY
from runtimes import networks


class Doubling:
    """Hooks as a class has them; it predicts in batches."""

    @staticmethod
    def predict_batch_fn(batch: list[Any], model: Any) -> list[Any]:
        return [2 * data for data in batch]


class Leaking:
    """A model that lets one request see another."""

    @staticmethod
    def predict_batch_fn(batch: list[Any], model: Any) -> list[Any]:
        return [batch[0] for _ in batch]


def test_a_model_of_every_kind_is_loaded_and_answers(tmp_path: Path) -> None:
    file = tmp_path / "doubling.py"
    file.write_text("def predict_fn(data, model):\n    return 2 * data\n")
    module = types.ModuleType("doubling")
    exec(file.read_text(), module.__dict__)
    for source in (str(file), file, Doubling, module):
        reply = testing.load(source).predict(21)
        assert (reply.status, reply.json(), reply.content_type) == (200, 42, JSON)
    networks.dense(tmp_path / "dense.onnx")
    reply = testing.load(tmp_path / "dense.onnx").predict(np.ones((1, 3)), NPY)
    np.testing.assert_allclose(reply.json()[0], networks.expected(np.ones((1, 3))), rtol=1e-5)


def test_without_a_source_the_installed_packages_are_the_model() -> None:
    with pytest.raises(LoadFailed, match="no installed package offers hooks"):
        testing.load()


def test_model_fn_gets_the_directory_that_a_test_names(tmp_path: Path) -> None:
    class Reading:
        @staticmethod
        def model_fn(model_dir: str) -> Any:
            return lambda data: Path(model_dir, data).read_text()

    (tmp_path / "word").write_text("found")
    assert testing.load(Reading, model_dir=tmp_path).predict("word").json() == "found"


def test_an_error_is_what_a_client_would_get_and_its_traceback_is_not() -> None:
    class Refusing:
        @staticmethod
        def input_fn(input_data: bytes, content_type: str) -> Any:
            raise forecastle.BadInput("no location")

    reply = testing.load(Refusing).predict({})
    assert reply.status == 400
    assert reply.json() == {"code": 400, "type": "BadInput", "message": "no location", "request_id": "test-0"}


def test_headers_go_both_ways_and_a_stream_comes_whole() -> None:
    class Streaming:
        @staticmethod
        def predict_fn(data: Any, model: Any) -> Any:
            forecastle.current_request().set_header("X-Got", forecastle.current_request().headers["x-given"])
            yield from data

    reply = testing.load(Streaming).predict(["a", "b"], headers={"X-Given": "1"})
    assert (reply.body, reply.headers) == (b"ab", {"x-got": "1"})


def test_a_stream_that_fails_on_the_way_is_its_error() -> None:
    class Breaking:
        @staticmethod
        def predict_fn(data: Any, model: Any) -> Any:
            yield "a"
            raise RuntimeError("broke")

    assert testing.load(Breaking).predict(1).json()["type"] == "PredictionFailed"


def test_ping_is_what_ping_fn_says() -> None:
    class Ill:
        @staticmethod
        def ping_fn(model: Any) -> bool:
            return False

    assert not testing.load(Ill).ping()
    assert testing.load(Doubling).ping()


def test_a_model_that_lets_requests_see_one_another_is_found_out() -> None:
    testing.assert_batched_equals_unbatched(testing.load(Doubling), [1, "a", [2]])
    with pytest.raises(AssertionError, match=r"request 1 gets 200 application/json b'1' in a batch of 2, and .* b'2'"):
        testing.assert_batched_equals_unbatched(testing.load(Leaking), [1, 2])


def test_a_bad_input_beside_good_ones_is_equal_to_it_alone() -> None:
    class Picky:
        @staticmethod
        def predict_batch_fn(batch: list[Any], model: Any) -> list[Any]:
            return [1 / data for data in batch]

    testing.assert_batched_equals_unbatched(testing.load(Picky), [1, 0, 4, "x"])


def test_a_prediction_passes_serializers_in_the_manner_of_sagemakers_sdk() -> None:
    model = testing.load(Doubling)
    found = testing.predict(
        [1.5], model=model, serializer=testing.Serializer(JSON), deserializer=testing.Deserializer(JSON)
    )
    assert found == [1.5, 1.5]
    found = testing.predict(
        [[1.0, 2.0]], model=model, serializer=testing.Serializer(CSV), deserializer=testing.Deserializer(CSV)
    )
    assert found == [[1.0, 2.0], [1.0, 2.0]]

    class Json:
        CONTENT_TYPE, ACCEPT = JSON, (JSON,)

        def serialize(self, data: Any) -> str:
            return json.dumps(data)

        def deserialize(self, stream: Any, content_type: str) -> Any:
            return json.load(stream)

    assert testing.predict("ab", model=model, serializer=Json(), deserializer=Json()) == "abab"
    with pytest.raises(AssertionError, match="500: "):
        testing.predict({}, model=model, serializer=Json(), deserializer=Json())
