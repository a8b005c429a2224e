from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadArtifact
from forecastle.models.descriptions import can_be_written, check_labels, completed, described, of_shapes
from forecastle.models.signature import DTYPES, Signature, Tensor, parse_signature

README = {
    "input": [
        {"data_name": "image1", "data_shape": [0, 3, 28, 28]},
        {"data_name": "image2", "data_shape": [0, 3, 9, 9]},
    ],
    "input_type": "image/jpeg",
    "output": [{"data_name": "softmax", "data_shape": [0, 100]}],
    "output_type": "application/json",
}
OUTPUTS = (Tensor("softmax_output", (None, 100)),)


def test_the_manual_s_spelling_becomes_the_code_s_and_is_told() -> None:
    data, changes = completed(json.dumps(README).encode(), "sig.json", ())
    document = json.loads(data)
    assert document["inputs"] == README["input"]
    assert document["outputs"] == README["output"]
    assert not {"input", "output"} & document.keys()
    assert changes == ["sig.json says input and output; the archive's says inputs and outputs, as MMS's code reads it"]


def test_outputs_that_it_does_not_list_are_the_model_s() -> None:
    partial = {key: value for key, value in README.items() if key != "output"}
    data, changes = completed(json.dumps(partial).encode(), "sig.json", OUTPUTS)
    assert parse_signature(data, "").outputs == OUTPUTS
    assert changes[1] == "sig.json lists no outputs; the archive's lists the model's: softmax_output"


def test_keys_that_nobody_knows_stay() -> None:
    entry = {"data_name": "x", "shape": [0, 3], "unit": "kPa"}
    given = {"inputs": [entry], "input_type": "application/json", "threshold": 0.2}
    document = json.loads(completed(json.dumps(given).encode(), "", ())[0])
    assert document["threshold"] == 0.2
    assert document["inputs"] == [{"data_name": "x", "data_shape": [0, 3], "unit": "kPa"}]


entries = st.builds(
    lambda name, shape, key, dtype: {"data_name": name, key: shape, **({"dtype": dtype} if dtype else {})},
    st.text(min_size=1),
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5),
    st.sampled_from(["shape", "data_shape"]),
    st.sampled_from(["", *DTYPES]),
)
tensors = st.lists(entries, min_size=1, max_size=3, unique_by=lambda entry: str(entry["data_name"]))
types = st.sampled_from(["image/jpeg", "Application/JSON "])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = {draw(st.sampled_from(["input", "inputs"])): draw(tensors), "input_type": draw(types)}
    if draw(st.booleans()):
        document |= {draw(st.sampled_from(["output", "outputs"])): draw(tensors), "output_type": draw(types)}
    return document


@given(documents())
def test_what_is_written_says_the_same_and_is_written_as_itself(document: dict[str, Any]) -> None:
    given = json.dumps(document).encode()
    before = parse_signature(given, "")
    data, _ = completed(given, "", OUTPUTS)
    after = parse_signature(data, "")
    assert after == Signature(before.inputs, before.outputs or OUTPUTS, before.input_type, before.output_type)
    assert completed(data, "", ()) == (data, [])


@pytest.mark.parametrize(
    ("shapes", "content"),
    [
        ({"data": (None, 3, 224, 224)}, "image/jpeg"),
        ({"a": (None, 1, 28, 28), "b": (None, 3, None, None)}, "image/jpeg"),
        ({"data": (None, 13)}, "application/json"),
        ({"data": (None, 64, 7, 7)}, "application/json"),
        ({"a": (None, 1, 28, 28), "b": (None, 2)}, "application/json"),
    ],
)
def test_inputs_are_pictures_where_all_are_shaped_so(shapes: dict[str, tuple[int | None, ...]], content: str) -> None:
    signature = of_shapes(shapes)
    assert signature.input_type == content
    assert [(tensor.name, tensor.shape) for tensor in signature.inputs] == list(shapes.items())
    assert described(signature) == signature


def test_a_tensor_without_axes_cannot_be_written() -> None:
    assert can_be_written(of_shapes({"x": (None, 3)}))
    assert not can_be_written(of_shapes({"x": ()}))
    assert not can_be_written(Signature((), OUTPUTS))
    assert not can_be_written(Signature((Tensor("x", (None,)),), (Tensor("y", ()),)))


@pytest.mark.parametrize("shape", [(None, 3), (1, 3, 1, 1), (None, None), (None,), ()])
def test_labels_fit_an_output_of_as_many_scores_or_of_any(shape: tuple[int | None, ...]) -> None:
    check_labels(
        ["a", "b", "c"], [Tensor("boxes", (None, 4)), Tensor("y", shape)] if len(shape) > 1 else [], "synset.txt"
    )


def test_labels_that_fit_no_output_are_refused_with_both_counts() -> None:
    with pytest.raises(
        BadArtifact, match=r"^synset\.txt has 2 labels, and the output 'y' has 3 and 'z' has 4; expected"
    ):
        check_labels(["a", "b"], [Tensor("y", (None, 3)), Tensor("z", (None, 4))], "synset.txt")
