"""Small archives and models for the tests of this folder."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from onnx import TensorProto, helper

SIGNATURE = (
    b'{"inputs": [{"data_name": "data", "data_shape": [0, 3, 8, 8]}], "input_type": "image/jpeg",'
    b' "outputs": [{"data_name": "softmax", "data_shape": [0, 4]}], "output_type": "application/json"}'
)
MMS = {"net-symbol.json": b"{}", "net-0000.params": b"weights", "signature.json": SIGNATURE, "synset.txt": b"a\nb\n"}


def make_zip(path: Path, files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip with exactly these names, sound or not."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return path


def make_zip_of_mode(path: Path, name: str, mode: int, content: bytes) -> Path:
    """A zip with one member of this Unix mode."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, content)
    return path


def make_zip_link(path: Path, name: str, target: str) -> Path:
    return make_zip_of_mode(path, name, stat.S_IFLNK | 0o777, target.encode())


def make_tar(path: Path, files: Mapping[str, bytes], *, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def make_onnx() -> bytes:
    """A real model, as the onnx package writes it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, producer_name="tests", doc_string="d")
    model.metadata_props.add(key="a", value="b")
    return bytes(model.SerializeToString())


def make_directory(path: Path, files: Mapping[str, bytes]) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
