"""The synset: a classifier's labels, one a line, in the order of the model's output."""

from __future__ import annotations

from pathlib import Path

from forecastle.errors import BadArtifact


def read_synset(path: Path) -> list[str]:
    """The labels, stripped of surrounding blanks; an empty line between labels keeps its place, those at the end go.

    Raises:
        BadArtifact: the file cannot be read, is not UTF-8, or holds no label.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadArtifact(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadArtifact(
            f"{path} is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
        ) from None
    # Not splitlines(): a label may hold one of the rarer characters it splits at.
    labels = [line.strip() for line in text.rstrip().split("\n")]
    if labels == [""]:
        raise BadArtifact(f"{path} is empty; expected one label a line, in the order of the model's output")
    return labels
