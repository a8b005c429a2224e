"""A script's default ``input_fn`` beside the toolkit's own, in an environment of its own."""

from __future__ import annotations

import base64
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadInput, UnsupportedMediaType
from forecastle.hooks.toolkit_codecs import ToolkitDefaults
from forecastle.media import CSV, JSON, NPY, NPZ
from hooks.test_toolkit import ask, directory, found
from side import side_environment


def npy(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


BODIES = [
    (JSON, b"[1, 2, 3]"),
    (JSON, b"[[1.5, 2], [3, 4]]"),
    (JSON, b"7"),
    (JSON, b'["a", "b"]'),
    (JSON, b"[true, false]"),
    (CSV, b"1,2,3\n4,5,6\n"),
    (CSV, b"1,2,3"),
    (CSV, b"1\n2\n"),
    (CSV, b"1.5"),
    (CSV, b"1,,2.5\n2,3,4\n"),
    (CSV, b"a,b\nc,d\n"),
    (NPY, npy([[1, 2], [3, 4]])),
    (NPY, npy(np.arange(6, dtype=np.uint8).reshape(1, 2, 3))),
]
THEIRS = """
import base64, json, sys
import numpy as np
from sagemaker_inference import content_types, decoder

for content_type, body in json.load(sys.stdin):
    data = base64.b64decode(body)
    if content_type in content_types.UTF8_TYPES:
        data = data.decode()
    array = decoder.decode(data, content_type)
    kind = array.dtype.kind
    print(json.dumps([array.shape, kind, array.tolist()]))
"""


def test_arrays_are_those_that_the_toolkit_makes() -> None:
    sent = json.dumps([(content_type, base64.b64encode(body).decode()) for content_type, body in BODIES])
    python = side_environment("sagemaker-inference==1.10.1", "gunicorn>=23")
    done = subprocess.run(
        [python, "-W", "ignore", "-c", THEIRS], input=sent, capture_output=True, text=True, check=True
    )
    for (content_type, body), line in zip(BODIES, done.stdout.splitlines(), strict=True):
        shape, kind, values = json.loads(line)
        ours = ToolkitDefaults().input_fn(body, content_type)
        assert (list(ours.shape), ours.dtype.kind) == (shape, kind), (content_type, body)
        assert json.loads(json.dumps(ours.tolist())) == values


def test_an_array_goes_through_predict_fn_and_out_as_json_or_csv(tmp_path: Path) -> None:
    script = "def model_fn(model_dir):\n    return lambda data: data.sum(axis=1)\n"
    artifact = found(directory(tmp_path, script), tmp_path)
    assert ask(artifact, b"[[1, 2], [3, 4]]") == (b"[3,7]", JSON)
    assert ask(artifact, b"1,2\n3,4\n", CSV, accept=CSV) == (b"3\n7\n", CSV)


def test_an_object_stays_a_dict_and_text_a_text() -> None:
    assert ToolkitDefaults().input_fn(b'{"a": [1]}', JSON) == {"a": [1]}
    assert ToolkitDefaults().input_fn(b"[1]", "").tolist() == [1]
    assert ToolkitDefaults().input_fn("caf\u00e9".encode(), "text/plain; charset=utf-8") == "caf\u00e9"


def test_a_sparse_matrix_comes_back_as_one_and_other_archives_as_arrays() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    file = io.BytesIO()
    sparse.save_npz(file, sparse.csr_matrix([[0, 2], [3, 0]]))
    assert ToolkitDefaults().input_fn(file.getvalue(), NPZ).toarray().tolist() == [[0, 2], [3, 0]]
    file = io.BytesIO()
    np.savez(file, a=np.arange(2))
    assert ToolkitDefaults().input_fn(file.getvalue(), NPZ)["a"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("body", "content_type", "error", "says"),
    [
        (b"[1, [2]]", JSON, BadInput, "no array"),
        (b"1,2\n3\n", CSV, BadInput, "the body is not CSV: Some errors were detected"),
        (b"", CSV, BadInput, "the body is empty; expected CSV"),
        (npy(np.array([{}], object)), NPY, BadInput, "object"),
        (b"x", "image/png", UnsupportedMediaType, "found image/png"),
    ],
)
def test_what_cannot_be_decoded_is_the_clients_fault(
    body: bytes, content_type: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        ToolkitDefaults().input_fn(body, content_type)


def test_csv_is_text_for_a_scripts_own_input_fn_and_npy_bytes(tmp_path: Path) -> None:
    script = (
        "import io\n"
        "def input_fn(request_body, request_content_type):\n"
        "    if request_content_type.startswith('text/csv'):\n"
        "        return io.StringIO(request_body).read().upper()\n"
        "    return type(request_body).__name__ + request_content_type\n"
    )
    artifact = found(directory(tmp_path, script), tmp_path)
    assert ask(artifact, "a,\u00e9".encode("latin-1"), "text/csv; charset=latin-1") == ('"A,\u00c9"'.encode(), JSON)
    assert json.loads(ask(artifact, npy([1]), NPY)[0]) == "bytesapplication/x-npy"
    assert json.loads(ask(artifact, b"1", "")[0]) == "strapplication/json"


def test_what_a_script_does_before_and_after_loading_is_done_in_order(tmp_path: Path) -> None:
    script = (
        "done = []\n"
        "def pre_model_fn(model_dir, context):\n    done.append('pre')\n"
        "def model_fn(model_dir):\n    done.append('load')\n    return lambda data: list(done)\n"
        "def model_warmup_fn(model_dir, model):\n    done.append('warm' if model(1) else '')\n"
    )
    body, _ = ask(found(directory(tmp_path, script), tmp_path), b"1")
    assert json.loads(body) == ["pre", "load", "warm"]
