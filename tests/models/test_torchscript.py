from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import pytest

from forecastle.models.torchscript import traced_inputs


class _Command:
    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self._command,)


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as writing:
        for name, data in members.items():
            writing.writestr(f"net/{name}.pkl", data)
    return path


def test_reading_what_a_program_was_traced_with_runs_nothing(tmp_path: Path) -> None:
    evil = pickle.dumps({"forward": [_Command(f"touch {tmp_path / 'ran'}")]}, 2)
    assert traced_inputs(archive(tmp_path / "m.pt", traced_inputs=evil)) is None
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("data", [b"", b"\x80\x02", b"\x80\x02].", b"\x80\x02}X\x07\x00\x00\x00forwardK\x01s."])
def test_what_is_not_as_known_is_not_known(tmp_path: Path, data: bytes) -> None:
    assert traced_inputs(archive(tmp_path / "m.pt", traced_inputs=data)) is None
    assert traced_inputs(archive(tmp_path / "n.pt", other=data)) is None
    (tmp_path / "o.pt").write_bytes(data)
    assert traced_inputs(tmp_path / "o.pt") is None
