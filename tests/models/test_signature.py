from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadArtifact
from forecastle.models.signature import DTYPES, Signature, Tensor, format_signature, parse_signature, read_signature

GOOD: dict[str, Any] = {
    "inputs": [{"data_name": "data", "data_shape": [0, 3, 224, 224]}],
    "input_type": "image/jpeg",
    "outputs": [{"data_name": "softmax", "data_shape": [0, 1000]}],
    "output_type": "application/json",
}
EXPECTED = Signature(
    inputs=(Tensor("data", (None, 3, 224, 224)),),
    outputs=(Tensor("softmax", (None, 1000)),),
    input_type="image/jpeg",
    output_type="application/json",
)


def parse(document: Any) -> Signature:
    return parse_signature(json.dumps(document).encode(), "sig.json")


def with_key(key: str, value: Any) -> dict[str, Any]:
    return GOOD | {key: value}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


def tensors(**fields: Any) -> list[dict[str, Any]]:
    entry = {"data_name": "x", "data_shape": [0, 2]} | fields
    return [{name: value for name, value in entry.items() if value is not ...}]


def test_a_signature_of_mms_is_read() -> None:
    assert parse(GOOD) == EXPECTED


def test_the_singular_keys_of_the_manual_are_read() -> None:
    document = {"input": GOOD["inputs"], "output": GOOD["outputs"]} | without("inputs")
    del document["outputs"]
    assert parse(document) == EXPECTED


def test_shape_stands_for_data_shape() -> None:
    assert parse(with_key("inputs", tensors(data_shape=..., shape=[0, 5]))).inputs == (Tensor("x", (None, 5)),)


def test_zero_means_any_size_on_every_axis_and_one_means_one() -> None:
    assert parse(with_key("inputs", tensors(data_shape=[1, 0, 5]))).inputs[0].shape == (1, None, 5)


def test_outputs_and_their_type_may_be_absent() -> None:
    signature = parse({"inputs": GOOD["inputs"], "input_type": "application/json"})
    assert (signature.outputs, signature.output_type) == ((), "application/json")


def test_keys_we_do_not_know_are_left_alone() -> None:
    assert parse(with_key("comment", {"a": 1})) == EXPECTED


def test_a_byte_order_mark_is_no_fault() -> None:
    assert parse_signature(b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), "sig.json") == EXPECTED


def test_names_may_hold_any_script() -> None:
    assert parse(with_key("inputs", tensors(data_name="входной_тензор"))).inputs[0].name == "входной_тензор"


def test_single_quotes_are_explained() -> None:
    with pytest.raises(BadArtifact, match=r"sig\.json is not JSON: .* single quotes .* replace every ' by \""):
        parse_signature(b"{ 'input' : [ { 'data_name' : 'image1', 'data_shape' : [ 0, 3, 28, 28 ] } ] }", "sig.json")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "sig.json is not JSON"),
        (b'{"inputs": [', "sig.json is not JSON"),
        (b'{"inputs": "\xff"}', "sig.json is not JSON"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"[1]", r"sig.json holds \[1\]; expected a JSON object"),
        (b'"' + b"x" * 500 + b'"', 'sig.json holds "xxxxx.*…; expected'),
    ],
)
def test_what_is_no_json_object_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(BadArtifact, match=says):
        parse_signature(data, "sig.json")


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"name": 1}, r"inputs is missing \(found the keys: name\); expected a list of"),
        ({}, r"inputs is missing \(found the keys: none\)"),
        (with_key("inputs", []), "inputs is an empty list"),
        (with_key("inputs", {"data_name": "x"}), r'inputs is \{"data_name":"x"\}; expected a list'),
        (with_key("inputs", ["x"]), r'inputs\[0\] is "x"; expected'),
        (with_key("input", []), "has both inputs and input"),
        (with_key("output", []), "has both outputs and output"),
        ({"input": "x"}, 'input is "x"; expected a list'),
        (with_key("inputs", tensors(data_name=...)), r"inputs\[0\].data_name is missing"),
        (with_key("inputs", tensors(data_name="")), r'inputs\[0\].data_name is ""'),
        (with_key("inputs", tensors(data_name=3)), r"inputs\[0\].data_name is 3; expected the tensor's name"),
        (with_key("inputs", tensors() * 2), r'inputs\[1\].data_name is "x" a second time'),
        (with_key("inputs", tensors(data_shape=...)), r"inputs\[0\].data_shape is missing"),
        (with_key("inputs", tensors(data_shape=[])), r"inputs\[0\].data_shape is \[\]"),
        (with_key("inputs", tensors(data_shape="3")), r'inputs\[0\].data_shape is "3"; expected a list of sizes'),
        (with_key("inputs", tensors(shape=[1])), "both data_shape and shape"),
        (with_key("outputs", tensors(data_shape=[0, -1])), r"outputs\[0\].data_shape\[1\] is -1; expected a whole"),
        (with_key("outputs", tensors(data_shape=[0, 2.5])), r"outputs\[0\].data_shape\[1\] is 2.5"),
        (with_key("outputs", tensors(data_shape=[True])), r"outputs\[0\].data_shape\[0\] is true"),
        (with_key("outputs", tensors(data_shape=[None])), r"outputs\[0\].data_shape\[0\] is null"),
        (with_key("outputs", tensors(data_shape=[10**30])), r"outputs\[0\].data_shape\[0\] is 1"),
        (with_key("outputs", tensors(dtype="float31")), r'outputs\[0\].dtype is "float31"; expected one of float32'),
        (with_key("outputs", tensors(dtype=["float32"])), r"outputs\[0\].dtype is \["),
        (without("input_type"), 'input_type is missing; expected "image/jpeg" or "application/json"'),
        (with_key("input_type", "image/png"), 'input_type is "image/png"; expected "image/jpeg" or'),
        (with_key("output_type", "text/csv"), 'output_type is "text/csv"'),
        (with_key("output_type", None), "output_type is null"),
    ],
)
def test_a_fault_names_the_key_what_was_found_and_what_was_expected(document: Any, says: str) -> None:
    with pytest.raises(BadArtifact, match=says) as caught:
        parse(document)
    assert caught.value.message.startswith("sig.json")
    assert "expected" in caught.value.message


def test_a_signature_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "signature.json").write_text(json.dumps(GOOD))
    assert read_signature(tmp_path / "signature.json") == EXPECTED


def test_a_missing_signature_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match=r"none\.json cannot be read: No such file"):
        read_signature(tmp_path / "none.json")


NAMES = st.text(st.characters(codec="utf-8"), min_size=1)
TENSORS = st.builds(
    Tensor,
    NAMES,
    st.lists(st.none() | st.integers(1, 2**31 - 1), min_size=1, max_size=5).map(tuple),
    st.sampled_from(DTYPES),
)
TYPES = st.sampled_from(["image/jpeg", "application/json"])


def some(least: int) -> st.SearchStrategy[tuple[Tensor, ...]]:
    return st.lists(TENSORS, min_size=least, max_size=4, unique_by=lambda tensor: tensor.name).map(tuple)


@given(st.builds(Signature, some(1), some(0), TYPES, TYPES))
def test_what_is_written_reads_back_as_the_same(signature: Signature) -> None:
    assert parse_signature(format_signature(signature), "x") == signature


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["inputs", "input", "outputs", "data_name", "data_shape", "shape", "input_type", "dtype"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_json_is_read_or_refused(document: Any) -> None:
    with suppress(BadArtifact):
        assert parse(document).inputs
