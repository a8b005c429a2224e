"""Small MMS archives of known networks."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from forecastle.runtimes.mxnet import params

Node = dict[str, Any]


def node(op: str, name: str, *inputs: int, **attributes: object) -> Node:
    attrs = {key: str(value) for key, value in attributes.items()}
    return {"op": op, "name": name, "inputs": [[index, 0, 0] for index in inputs], "attrs": attrs}


def write(
    path: Path, nodes: list[Node], weights: dict[str, Any], signature: dict[str, Any], **files: str | bytes
) -> Path:
    """Write an archive; of ``files``, ``service_py`` is service.py and ``MANIFEST_json`` is MANIFEST.json."""
    arguments = [index for index, entry in enumerate(nodes) if entry["op"] == "null"]
    rows = list(range(len(nodes) + 1))
    symbol = {"nodes": nodes, "arg_nodes": arguments, "node_row_ptr": rows, "heads": [[len(nodes) - 1, 0, 0]]}
    params.save(path.with_suffix(".params"), {f"arg:{name}": array for name, array in weights.items()})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}-symbol.json", json.dumps(symbol))
        archive.write(path.with_suffix(".params"), f"{path.stem}-0000.params")
        archive.writestr("signature.json", json.dumps(signature))
        for name, data in files.items():
            stem, _, suffix = name.rpartition("_")
            archive.writestr(f"{stem}.{suffix}", data)
    path.with_suffix(".params").unlink()
    return path


def signature(
    inputs: dict[str, list[int]], outputs: dict[str, list[int]], input_type: str, output_type: str = "application/json"
) -> dict[str, Any]:
    return {
        "inputs": [{"data_name": name, "data_shape": shape} for name, shape in inputs.items()],
        "input_type": input_type,
        "outputs": [{"data_name": name, "data_shape": shape} for name, shape in outputs.items()],
        "output_type": output_type,
    }


def colours(path: Path, synset: str = "red\ngreen\nblue\nx\ny\nz\n", **files: str | bytes) -> Path:
    """A picture of 8 x 8 in, six scores out: how red, green and blue it is, and three that are always low."""
    nodes = [
        node("null", "data"),
        node("Flatten", "flat", 0),
        node("null", "fc_weight"),
        node("FullyConnected", "fc", 1, 2, num_hidden=6, no_bias=True),
        node("softmax", "softmax", 3),
    ]
    weights = np.zeros((6, 3, 64), np.float32)
    for channel in range(3):
        weights[channel, channel] = 1e-3
    described = signature({"data": [0, 3, 8, 8]}, {"softmax": [0, 6]}, "image/jpeg")
    files = {"synset_txt": synset, **files} if synset else files
    return write(path, nodes, {"fc_weight": weights.reshape(6, 192)}, described, **files)


def two_pictures(path: Path) -> Path:
    """The network of MMS's own tests: ``data1`` of 64 x 64 and ``data2`` of 32 x 32 in, ten scores out."""
    nodes = [
        node("null", "data1"),
        node("Flatten", "flat1", 0),
        node("null", "data2"),
        node("Flatten", "flat2", 2),
        node("Concat", "both", 1, 3, num_args=2, dim=1),
        node("null", "fc_weight"),
        node("FullyConnected", "fc", 4, 5, num_hidden=10, no_bias=True),
        node("softmax", "softmax", 6),
    ]
    weights = np.random.default_rng(3).normal(0, 1e-5, (10, 3 * (64 * 64 + 32 * 32))).astype(np.float32)
    shapes = {"data1": [1, 3, 64, 64], "data2": [1, 3, 32, 32]}
    synset = "".join(f"n{index} label {index}\n" for index in range(10))
    described = signature(shapes, {"softmax": [1, 10]}, "image/jpeg")
    return write(path, nodes, {"fc_weight": weights}, described, synset_txt=synset)


def doubling(path: Path, **files: str | bytes) -> Path:
    """``data`` (rows, 3) to its double, as JSON both ways."""
    nodes = [node("null", "data"), node("_mul_scalar", "double", 0, scalar=2.0)]
    return write(path, nodes, {}, signature({"data": [0, 3]}, {"double": [0, 3]}, "application/json"), **files)


def jpeg(colour: str | tuple[int, int, int] = "blue", size: tuple[int, int] = (20, 10), kind: str = "JPEG") -> bytes:
    picture = io.BytesIO()
    Image.new("RGB", size, colour).save(picture, kind)
    return picture.getvalue()
