"""Writing an archive: the same files give the same bytes."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from forecastle.models.members import safe_parts
from forecastle.models.partial import partial_directory

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold
_MODE = 0o100644


def write_archive(path: Path, files: Mapping[str, Path | bytes], *, compress: bool = False) -> None:
    """Write a zip of ``files``, by member name, at ``path``, replacing what is there only once all of it is written.

    Members are sorted and carry fixed dates and permissions, so the same content gives the same bytes (compressed:
    with the same zlib). Weights hardly shrink, hence stored by default.

    Raises:
        BadArtifact: a name could not be unpacked safely.
        StartError: a file cannot be read, or ``path`` not be written.
    """
    with partial_directory(path.absolute().parent) as partial:
        temporary = partial / "archive"
        with temporary.open("xb") as out, zipfile.ZipFile(out, "w") as archive:
            for name in sorted(files):
                _write(archive, "/".join(safe_parts(name, str(path))), files[name], compress=compress)
            archive.close()
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)


def _write(archive: zipfile.ZipFile, name: str, content: Path | bytes, *, compress: bool) -> None:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.create_system = 3  # Unix, whatever wrote it
    info.external_attr = _MODE << 16
    info.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    if isinstance(content, bytes):
        archive.writestr(info, content)
        return
    info.file_size = content.stat().st_size  # tells whether the member needs zip64
    with content.open("rb") as source, archive.open(info, "w") as member:
        shutil.copyfileobj(source, member, 1 << 20)
