from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from PIL import Image

from forecastle.errors import BadInput, NotAcceptable, RequestError, UnsupportedMediaType
from forecastle.hooks.discover import new_manager
from forecastle.hooks.resolve import Hooks, load
from forecastle.hooks.spec import plugin_hook
from forecastle.media import CSV, JSON, NPY, NPZ, encode
from forecastle.messages import Part
from forecastle.models.artifact import Artifact
from forecastle.replica.executor import Begun, Executor, Job
from forecastle.runtimes import onnx
from runtimes import networks


def loaded(artifact: Artifact) -> Hooks:
    return load(new_manager(), onnx.open(artifact), "")


def raw(data: Any, content_type: str = JSON) -> list[Part]:
    return [Part("", content_type, data if isinstance(data, bytes) else json.dumps(data).encode())]


def ask(hooks: Hooks, parts: list[Part], accept: str = "*/*") -> tuple[Any, str]:
    (answer,) = Executor(hooks).answer([Job("id", parts, accept, 1e12)])
    if isinstance(answer, RequestError):
        raise answer
    assert not isinstance(answer, Begun)
    body, content_type = answer
    return (json.loads(body) if content_type == JSON else body), content_type


@pytest.fixture
def dense(tmp_path: Path) -> Hooks:
    return loaded(networks.dense(tmp_path / "dense.onnx"))


ROW = [0.5, -1.0, 2.0]


@pytest.mark.parametrize(
    "parts",
    [
        raw(ROW),
        raw({"x": ROW}),
        raw({"input0": ROW}),
        raw(json.dumps(ROW).encode(), "application/json; charset=utf-8"),
        raw(json.dumps(ROW).encode(), ""),
        [Part("x", "", b"[0.5, -1.0, 2.0]")],
        [Part("input0", "", b"(0.5, -1, 2)")],
        [Part("x", JSON, b"[0.5, -1.0, 2.0]")],
    ],
    ids=["list", "own name", "input0", "charset", "no type", "field", "python literal", "typed field"],
)
def test_one_record_is_read_however_it_is_sent_and_answered_without_a_batch_axis(
    dense: Hooks, parts: list[Part]
) -> None:
    ((scores,), content_type) = ask(dense, parts)
    assert content_type == JSON
    np.testing.assert_allclose(scores, networks.expected([ROW])[0], rtol=1e-5)


def test_a_batch_is_answered_with_its_batch_axis(dense: Hooks) -> None:
    rows = [ROW, [1, 2, 3]]
    ((scores,), _) = ask(dense, raw(rows))
    np.testing.assert_allclose(scores, networks.expected(rows), rtol=1e-5)


def test_npy_and_csv_go_in_and_out(dense: Hooks) -> None:
    rows = np.array([ROW, [1, 2, 3]], np.float64)
    buffer = io.BytesIO()
    np.save(buffer, rows)
    body, content_type = ask(dense, raw(buffer.getvalue(), NPY), accept=NPY)
    assert content_type == NPY
    np.testing.assert_allclose(np.load(io.BytesIO(body)), networks.expected(rows), rtol=1e-5)
    body, content_type = ask(dense, raw(b"0.5,-1,2\n1,2,3\n", CSV), accept="text/csv")
    assert content_type == CSV
    found = [[float(cell) for cell in line.split(",")] for line in body.decode().splitlines()]
    np.testing.assert_allclose(found, networks.expected(rows), rtol=1e-5)


def test_several_outputs_are_a_list_in_json_and_named_in_npz(tmp_path: Path) -> None:
    hooks = loaded(networks.free_width(tmp_path / "m.onnx"))
    assert ask(hooks, raw([1.0, 2.0]))[0] == [3.0, [2.0, 4.0]]
    body, _ = ask(hooks, raw([[1.0, 2.0]]), accept=NPZ)
    arrays = np.load(io.BytesIO(body))
    assert arrays["sum"].tolist() == [3.0]
    assert arrays["double"].tolist() == [[2.0, 4.0]]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (raw([1.0, 2.0]), r"x has shape \(2\); expected \(any, 3\), or \(3\) for one record"),
        (raw([1.0, None, 2.0]), r"x\[1\] is null; expected a number"),
        (raw([1.0, "2", 2.0]), r"x\[1\] is '2'"),
        (raw([[1, 2, 3], [1, 2]]), "x is ragged"),
        (raw([]), "x has shape"),
        (raw({"y": ROW}), r"no input for the key 'y'; expected 'x' \(or 'input0'\)"),
        (raw({}), "the input 'x' is missing"),
        (raw({"x": ROW, "input0": ROW}), "'x' was sent twice"),
        ([Part("y", "", b"1")], r"no input for the field 'y'; expected 'x' \(or 'input0'\)"),
        ([Part("x", "", b"[1,2,3]"), Part("input0", "", b"[1,2,3]")], "'x' was sent twice"),
        (raw(b""), "the input 'x' is empty"),
        (raw(b"[1, 2"), "not JSON"),
        (raw(b"\xff\xfe", "text/plain"), "the input 'x'"),
        (raw(b"__import__('os')", ""), "the input 'x'"),
        (raw(b"not npy", NPY), "not NPY"),
    ],
)
def test_a_wrong_input_is_named_with_what_was_expected(dense: Hooks, parts: list[Part], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ask(dense, parts)


def test_a_content_type_that_cannot_be_read_is_refused_with_those_that_can(dense: Hooks) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"application/xml.*application/json"):
        ask(dense, raw(b"<x/>", "application/xml"))


def test_what_cannot_be_written_is_refused_with_what_can(dense: Hooks) -> None:
    with pytest.raises(NotAcceptable, match="application/json"):
        ask(dense, raw(ROW), accept="application/xml")


def test_several_inputs_come_by_name_or_position_in_any_order(tmp_path: Path) -> None:
    hooks = loaded(networks.two_inputs(tmp_path / "m.onnx"))
    assert ask(hooks, raw({"b": [0.5, 0.5], "a": [1, 2]}))[0] == [[1.5, 2.5]]
    assert ask(hooks, [Part("input1", "", b"[[0.5, 0.5]]"), Part("a", "", b"[[1, 2]]")])[0] == [[[1.5, 2.5]]]
    with pytest.raises(BadInput, match="the input 'b' is missing"):
        ask(hooks, [Part("a", "", b"[1, 2]")])
    with pytest.raises(BadInput, match="2 inputs"):
        ask(hooks, raw([1, 2]))
    with pytest.raises(BadInput, match="different numbers of rows"):
        ask(hooks, raw({"a": [[1, 2], [3, 4]], "b": [[1, 2]]}))


def picture(colour: tuple[int, int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 20), colour).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(("name", "content_type"), [("input0", "image/png"), ("image", ""), ("", "image/jpeg")])
def test_a_picture_is_stretched_to_the_declared_size(tmp_path: Path, name: str, content_type: str) -> None:
    hooks = loaded(networks.mean_colour(tmp_path / "m.onnx"))
    answer, _ = ask(hooks, [Part(name, content_type, picture((10, 20, 30)))])
    assert answer == [[10.0, 20.0, 30.0]]


def test_a_classifier_with_labels_answers_with_its_best_and_a_batch_with_those_of_each_row(tmp_path: Path) -> None:
    artifact = networks.dense(tmp_path / "m.onnx")
    (tmp_path / "synset.txt").write_text("n1 cat\nn2 dog\nn3 hen\nn4 ünicorn\n")
    hooks = loaded(artifact)
    ((best,), _) = ask(hooks, raw(ROW))
    order = np.argsort(-networks.expected([ROW])[0])
    labels = ["n1 cat", "n2 dog", "n3 hen", "n4 ünicorn"]
    assert [entry["class"] for entry in best] == [labels[i] for i in order]
    assert best[0]["probability"] == pytest.approx(networks.expected([ROW])[0].max(), rel=1e-5)
    ((rows,), _) = ask(hooks, raw([ROW, ROW]))
    assert [[entry["class"] for entry in row] for row in rows] == [[labels[i] for i in order]] * 2


def test_a_model_of_one_row_at_a_time_is_given_one_row_at_a_time(tmp_path: Path) -> None:
    hooks = loaded(networks.dense(tmp_path / "m.onnx", rows=1))
    rows = [ROW, [1, 2, 3], [0, 0, 1]]
    ((scores,), _) = ask(hooks, raw(rows))
    np.testing.assert_allclose(scores, networks.expected(rows), rtol=1e-5)


def test_a_model_that_mixes_its_rows_is_never_given_those_of_two_requests(tmp_path: Path) -> None:
    hooks = loaded(networks.over_batch(tmp_path / "m.onnx"))
    jobs = [Job(str(i), raw([[i, i]]), "*/*", 1e12) for i in range(3)]
    answers = Executor(hooks).answer(jobs)
    assert [json.loads(answer[0]) for answer in answers if not isinstance(answer, RequestError)] == [
        [0.0],
        [1.0],
        [2.0],
    ]


@pytest.mark.parametrize(
    "parts",
    [
        raw(json.dumps(ROW).encode(), "application/octet-stream"),
        [Part("x", "application/octet-stream", json.dumps(ROW).encode())],
        [Part("x", "text/plain; charset=utf-16", str(ROW).encode("utf-16"))],
        [Part("x", JSON, b"(0.5, -1, 2)")],
        [Part("", "", encode(np.array(ROW), NPY))],
        [Part("x", "application/octet-stream", encode(np.array(ROW), NPY))],
        raw(encode({"input0": np.array(ROW)}, NPZ), NPZ),
        raw(encode({"x": np.array(ROW)}, NPZ), ""),
        raw(b"\xef\xbb\xbf[0.5, -1.0, 2.0]"),
        raw(b' { "x" : [ 0.5 , -1 , 2 ] } '),
    ],
    ids=["file", "form file", "utf-16", "literal", "npy", "npy file", "npz", "npz file", "byte order mark", "blanks"],
)
def test_a_record_is_told_by_its_type_or_by_its_bytes(dense: Hooks, parts: list[Part]) -> None:
    ((scores,), _) = ask(dense, parts)
    np.testing.assert_allclose(scores, networks.expected([ROW])[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (raw(b"[0.5, (1), 2]"), "not JSON"),
        ([Part("x", "", b"{[]: 1}")], "the input 'x': the body is not JSON"),
        ([Part("x", "", b"['\\d', 1, 2]")], r"x\[0\] is"),
        ([Part("x", "", b"(" * 5000)], "the input 'x'"),
        ([Part("x", "", b"{'a': 1}")], "x is an object"),
        ([Part("x", "text/plain; charset=klingon", b"1")], "'klingon' is unknown"),
        (raw(b"[" * 100_000), "nested too deeply"),
        (raw([[], []]), "x has shape"),
        (raw({"x": []}), "x has shape"),
        (raw({"x": [[1, 2, 3], [1, 2]]}), "x is ragged"),
        (raw({"x": ROW, "y": 1}), "no input for the key 'y'"),
    ],
)
def test_what_only_looks_like_an_input_is_refused(dense: Hooks, parts: list[Part], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ask(dense, parts)


def test_no_rows_are_refused(dense: Hooks) -> None:
    with pytest.raises(BadInput, match="x has no rows"):
        ask(dense, raw(encode(np.zeros((0, 3)), NPY), NPY))


def test_one_record_is_one_line_of_csv(dense: Hooks) -> None:
    body, _ = ask(dense, raw(ROW), accept="text/csv")
    np.testing.assert_allclose([float(cell) for cell in body.split(b",")], networks.expected([ROW])[0], rtol=1e-5)


def test_one_records_array_has_no_batch_axis(dense: Hooks) -> None:
    body, _ = ask(dense, raw(ROW), accept=NPY)
    assert np.load(io.BytesIO(body)).shape == (4,)


def test_one_records_numbers_are_named_in_npz(tmp_path: Path) -> None:
    body, _ = ask(loaded(networks.free_width(tmp_path / "m.onnx")), raw([1.0, 2.0]), accept=NPZ)
    arrays = np.load(io.BytesIO(body))
    assert (arrays["sum"].tolist(), arrays["double"].tolist()) == (3.0, [2.0, 4.0])


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (TensorProto.FLOAT16, [0.5, -2.0]),
        (TensorProto.DOUBLE, [0.1, 1e300]),
        (TensorProto.INT64, [2**63 - 1, -(2**63)]),
        (TensorProto.UINT64, [2**64 - 1, 0]),
        (TensorProto.UINT8, [255, 0]),
        (TensorProto.BOOL, [True, False]),
        (TensorProto.STRING, ["ä", ""]),
    ],
)
def test_every_type_goes_in_and_out_unchanged(tmp_path: Path, kind: int, sent: list[Any]) -> None:
    hooks = loaded(networks.same(tmp_path / "m.onnx", kind, ["N", 2]))
    assert ask(hooks, raw(sent))[0] == [sent]
    assert ask(hooks, raw([sent, sent]))[0] == [[sent, sent]]


def test_a_number_that_is_none_is_null(tmp_path: Path) -> None:
    hooks = loaded(networks.same(tmp_path / "m.onnx", TensorProto.FLOAT, ["N", 2]))
    sent = encode(np.array([np.nan, np.inf], "float32"), NPY)
    assert ask(hooks, raw(sent, NPY))[0] == [[None, None]]
    assert ask(hooks, raw(b"[1e39, 1]"))[0] == [[None, 1.0]], "beyond float32 is infinite"


def test_scalars_are_records_where_a_row_is_a_scalar(tmp_path: Path) -> None:
    hooks = loaded(networks.same(tmp_path / "m.onnx", TensorProto.FLOAT, ["N"]))
    assert ask(hooks, raw(2.5))[0] == [2.5]
    assert ask(hooks, raw([2.5, 3]))[0] == [[2.5, 3.0]]
    assert ask(hooks, raw(b"2.5\n3\n", CSV), accept=CSV)[0] == b"2.5\n3.0\n"


def test_a_list_of_dicts_as_output_is_given_row_by_row(tmp_path: Path) -> None:
    hooks = loaded(networks.logistic_regression(tmp_path / "m.onnx"))
    wanted = networks.expected([ROW, [1, 2, 3]])
    jobs = [Job("a", raw(ROW), "*/*", 1e12), Job("b", raw([[1, 2, 3], ROW]), "*/*", 1e12)]
    first, second = Executor(hooks).answer(jobs)
    assert not isinstance(first, RequestError)
    assert not isinstance(second, RequestError)
    label, probabilities = json.loads(first[0])
    assert label == wanted[0].argmax()
    np.testing.assert_allclose([probabilities[str(i)] for i in range(4)], wanted[0], rtol=1e-5)
    labels, rows = json.loads(second[0])
    assert labels == [wanted[1].argmax(), label]
    assert rows[1] == pytest.approx(probabilities)


def test_a_batch_of_one_fixed_size_is_taken_whole(tmp_path: Path) -> None:
    hooks = loaded(networks.dense(tmp_path / "m.onnx", rows=2))
    ((scores,), _) = ask(hooks, raw([ROW, ROW]))
    np.testing.assert_allclose(scores, networks.expected([ROW, ROW]), rtol=1e-5)
    for wrong in (ROW, [ROW], [ROW] * 4):
        with pytest.raises(BadInput, match=r"expected \(2, 3\)"):
            ask(hooks, raw(wrong))


def test_pictures_go_to_models_that_have_the_channels_last(tmp_path: Path) -> None:
    hooks = loaded(networks.mean_colour_last(tmp_path / "m.onnx"))
    assert ask(hooks, [Part("image", "", picture((10, 20, 30)))])[0] == [[10.0, 20.0, 30.0]]


def test_a_model_of_pictures_takes_tensors_too_and_says_what_it_takes(tmp_path: Path) -> None:
    hooks = loaded(networks.mean_colour(tmp_path / "m.onnx"))
    tensor = np.ones((3, 4, 4), "float32") * np.array([1, 2, 3], "float32")[:, None, None]
    assert ask(hooks, raw(tensor.tolist()))[0] == [[1.0, 2.0, 3.0]]
    assert ask(hooks, raw(encode(tensor[None], NPY), NPY))[0] == [[[1.0, 2.0, 3.0]]]
    with pytest.raises(UnsupportedMediaType, match="image/jpeg, image/png"):
        ask(hooks, raw(b"%PDF", "application/pdf"))
    with pytest.raises(BadInput, match="the picture"):
        ask(hooks, raw(b"no picture", "image/jpeg"))


def test_a_picture_is_refused_by_a_model_that_takes_none(dense: Hooks) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"cannot be read from image/png; expected application/json"):
        ask(dense, raw(picture((1, 2, 3)), "image/png"))


def test_labels_go_to_scores_that_have_axes_of_one_behind_them(tmp_path: Path) -> None:
    artifact = networks.scores_of_pixels(tmp_path / "m.onnx")
    (tmp_path / "synset.txt").write_text("a\nb\nc\n")
    answer, _ = ask(loaded(artifact), raw([0.25, 1.0, 0.5]))
    assert answer == [
        [{"class": "b", "probability": 1.0}, {"class": "c", "probability": 0.5}, {"class": "a", "probability": 0.25}]
    ]


def test_labels_of_another_number_than_the_scores_are_left_out(tmp_path: Path) -> None:
    artifact = networks.dense(tmp_path / "m.onnx")
    (tmp_path / "synset.txt").write_text("a\nb\nc\n")
    ((scores,), _) = ask(loaded(artifact), raw(ROW))
    np.testing.assert_allclose(scores, networks.expected([ROW])[0], rtol=1e-5)


class Own:
    """A user's hooks around a model of tensors."""

    @plugin_hook
    def input_fn(self, input_data: bytes, content_type: str) -> Any:
        return json.loads(input_data)["rows"]


def test_a_users_input_fn_is_held_against_the_signature(tmp_path: Path) -> None:
    manager = new_manager()
    manager.register(Own())
    hooks = load(manager, onnx.open(networks.dense(tmp_path / "m.onnx")), "")
    ((scores,), _) = ask(hooks, raw({"rows": [ROW]}))
    np.testing.assert_allclose(scores, networks.expected([ROW]), rtol=1e-5)
    ((scores,), _) = ask(hooks, raw({"rows": {"x": ROW}}))
    np.testing.assert_allclose(scores, networks.expected([ROW])[0], rtol=1e-5)
    with pytest.raises(BadInput, match="x has shape"):
        ask(hooks, raw({"rows": [1]}))


FLOATS = st.floats(-100, 100, width=32)
ROWS = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(FLOATS, min_size=width, max_size=width), max_size=3))
GOOD = st.one_of(st.lists(FLOATS, min_size=1, max_size=4), ROWS)
BAD = st.sampled_from([None, "text", [1, "x"], [[1, 2], [3]], [], {"y": 1}, [None]])
TYPES = st.sampled_from(["float64", "float32", "float16", "int8", "bool", "S3"])
BODIES = st.one_of(
    GOOD.map(raw),
    BAD.map(raw),
    GOOD.map(lambda rows: raw({"x": rows})),
    st.just(raw(b"{", JSON)),
    st.builds(lambda rows, dtype: raw(encode(np.array(rows).astype(dtype), NPY), NPY), GOOD, TYPES),
    ROWS.map(lambda rows: raw(encode(rows, CSV), CSV)),
)
_hooks: dict[str, Hooks] = {}


@settings(max_examples=200, deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=8))
def test_batched_equals_unbatched_for_every_mix_of_shapes_and_faults(
    tmp_path_factory: pytest.TempPathFactory, requests: list[list[Part]]
) -> None:
    if not _hooks:
        _hooks["m"] = loaded(networks.free_width(tmp_path_factory.mktemp("m") / "m.onnx"))
    executor = Executor(_hooks["m"])
    together = executor.answer([Job(str(i), parts, "*/*", 1e12) for i, parts in enumerate(requests)])
    for parts, answer in zip(requests, together, strict=True):
        (alone,) = executor.answer([Job("alone", parts, "*/*", 1e12)])
        if isinstance(alone, RequestError):
            assert isinstance(answer, RequestError)
            assert (answer.type, answer.message) == (alone.type, alone.message)
        else:
            assert not isinstance(answer, RequestError), answer.message
            for entry, one in zip(json.loads(answer[0]), json.loads(alone[0]), strict=True):
                np.testing.assert_allclose(entry, one, rtol=1e-5, atol=1e-4)
