"""Archives of MMS 1.x and TorchServe, and legacy ones that are a service and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forecastle.errors import BadArtifact
from forecastle.models.artifact import Artifact, open_artifact
from forecastle.models.mar import read_mar
from models.builders import make_directory, make_tar, make_zip

MANIFEST = {
    "runtime": "python",
    "model": {"modelName": "noop", "handler": "service:handle"},
    "modelServerVersion": "1.0",
    "implementationVersion": "1.0",
    "specificationVersion": "1.0",
}
TORCHSERVE = {
    "createdOn": "10/09/2023 13:14:15",
    "runtime": "PYTHON",
    "model": {
        "modelName": "net",
        "serializedFile": "net.pt",
        "handler": "handler.py",
        "modelVersion": "2.1",
        "requirementsFile": "needs.txt",
    },
    "archiverVersion": "0.12.0",
}
LEGACY = {
    "Model-Archive-Version": 0.1,
    "Model-Server": 0.1,
    "Engine": {"MXNet": 0.12},
    "Model": {
        "Model-Name": "noop_v0.1",
        "Service": "noop_service.py",
        "Signature": "signature.json",
        "Symbol": "",
        "Parameters": "",
        "Model-Format": "MXNet-Symbolic",
    },
}
NOOP_SERVICE = b"""
from mms.model_service.model_service import SingleNodeService

class NoopService(SingleNodeService):
    def _inference(self, data):
        return "OK"
"""
SIGNATURE = b"""{
    "inputs": [{"data_name": "param_name", "shape": [1]}], "input_type": "application/json",
    "outputs": [{"data_name": "result", "shape": [1]}], "output_type": "application/json"
}"""


def mar(manifest: object = MANIFEST, **files: bytes) -> dict[str, bytes]:
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    return {"MAR-INF/MANIFEST.json": text, "service.py": b"def handle(data, context): ...", **files}


def find(path: Path) -> Artifact:
    return open_artifact(str(path), cache=path.parent / "cache")


def test_a_mar_is_known_by_its_manifest_as_a_zip_a_tar_or_a_folder(tmp_path: Path) -> None:
    files = mar(**{"schema.json": b"{}", "weights.params": b"", "code/inference.py": b""})
    archive = make_zip(tmp_path / "a.mar", files)
    shutil.unpack_archive(archive, tmp_path / "a", "zip")
    for path in (
        archive,
        make_zip(tmp_path / "a.anything", files),
        make_tar(tmp_path / "a.tar.gz", {f"noop/{name}": content for name, content in files.items()}),
        tmp_path / "a",
    ):
        found = find(path)
        assert (found.kind, found.runtime, found.service) == ("mar archive", "handler", "service:handle")
        assert Path(found.path, "service.py").is_file()
        assert (found.script, found.requirements) == ("", "")


def test_what_torchserve_writes_is_one_with_its_version_and_requirements(tmp_path: Path) -> None:
    found = find(make_zip(tmp_path / "net.mar", mar(TORCHSERVE, **{"needs.txt": b"six", "net.pt": b"PK"})))
    assert (found.kind, found.service, Path(found.requirements).name) == ("mar archive", "handler.py", "needs.txt")
    said = read_mar(Path(found.path), "net.mar")
    assert (said.name, said.version, said.manifest) == ("net", "2.1", TORCHSERVE)


def test_a_requirements_file_that_no_manifest_names_is_installed_too(tmp_path: Path) -> None:
    found = find(make_zip(tmp_path / "net.mar", mar(**{"requirements.txt": b"six"})))
    assert Path(found.requirements).name == "requirements.txt"


def of(**model: object) -> dict[str, Any]:
    return {**MANIFEST, "model": {**MANIFEST["model"], **model}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"{", r"a.mar: MAR-INF/MANIFEST.json is not JSON"),
        ([], 'has no "model"; expected'),
        ({"model": "x"}, 'has no "model"; expected'),
        ({**MANIFEST, "runtime": "java"}, "the runtime in MAR-INF/MANIFEST.json is 'java'; expected one of python, py"),
        (of(modelName=""), "model.modelName is missing"),
        (of(handler=7), "model.handler in MAR-INF/MANIFEST.json is 7; expected a text"),
        (of(requirementsFile="needs.txt"), "names needs.txt, which is not in the archive; it holds MAR-INF, service"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_its_key(tmp_path: Path, manifest: object, message: str) -> None:
    with pytest.raises(BadArtifact, match=message):
        find(make_zip(tmp_path / "a.mar", mar(manifest)))


def test_a_legacy_archive_may_be_a_service_without_a_network(tmp_path: Path) -> None:
    files = {
        "MANIFEST.json": json.dumps(LEGACY).encode(),
        "noop_service.py": NOOP_SERVICE,
        "signature.json": SIGNATURE,
    }
    folder = make_directory(tmp_path / "noop-v0.1", files)
    below = tmp_path / "around" / "noop"
    shutil.copytree(folder, below)
    for path in (folder, below.parent, make_zip(tmp_path / "noop.zip", files)):
        found = find(path)
        assert (found.kind, found.runtime, Path(found.service).name) == (
            "service archive",
            "service",
            "noop_service.py",
        )


def test_a_legacy_archive_whose_network_is_incomplete_is_broken_all_the_same(tmp_path: Path) -> None:
    files = {"MANIFEST.json": json.dumps(LEGACY).encode(), "noop_service.py": NOOP_SERVICE, "net-0000.params": b""}
    with pytest.raises(BadArtifact, match="holds no symbol file"):
        find(make_zip(tmp_path / "noop.zip", files))
