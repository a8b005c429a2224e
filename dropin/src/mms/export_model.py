"""``export_serving``: from training code straight to an archive. Nothing of MXNet is imported here."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from forecastle.cluster.export import export
from forecastle.cluster.specs import default_cache_dir, valid_name
from forecastle.errors import BadArtifact, StartError, UsageError
from forecastle.models.export import Order

__all__ = ("export_serving",)

logger = logging.getLogger(__name__)

_SUFFIXES = (".zip", ".model")


def export_serving(
    model: Any,
    filename: str,
    signature: Mapping[str, Any],
    export_path: str | Path | None = None,
    aux_files: Iterable[str | Path] | None = None,
    *,
    force: bool = False,
) -> str:
    """Write a trained MXNet model as an archive, and return its path.

    ``model`` is a bound ``Module`` or a hybridized Gluon ``HybridBlock`` that has run once. ``filename`` is the
    archive's name; without ``.zip`` or ``.model`` it gets ``.model``. ``signature`` is the content of a signature.json;
    a ``Module`` tells the ``inputs`` and ``outputs`` that it leaves out, and a block's outputs are read from what it
    exports. ``aux_files`` are packed too: synset.txt, a service's file, whatever that needs.

    The model is loaded from its archive first, where what that needs is installed (``forecastle[mxnet]``).

    Raises:
        UsageError: the model is neither, it is not bound, or the archive is there already and ``force`` is not given.
        BadArtifact: signature, labels and model contradict each other.
    """
    path = Path(filename)
    name = path.stem if path.suffix in _SUFFIXES else path.name
    target = Path(export_path or "").expanduser() / (path.name if path.suffix in _SUFFIXES else f"{path.name}.model")
    with tempfile.TemporaryDirectory(prefix="forecastle-") as folder:
        prefix = str(Path(folder, valid_name(name)))
        if hasattr(model, "save_checkpoint"):
            document = _of_module(model, signature)
            model.save_checkpoint(prefix, 0)
        elif hasattr(model, "export"):
            document = _of_block(signature)
            model.export(prefix, epoch=0)
        else:
            raise UsageError(f"a {type(model).__name__} cannot be exported: expected a Module or a Gluon HybridBlock")
        Path(folder, "signature.json").write_text(json.dumps(document), encoding="utf-8")
        files = tuple(Path(file).expanduser() for file in aux_files or ())
        order = Order(name=name, source=folder, target=target, files=files, force=force, lenient=True)
        try:
            exported = export(order, cache=default_cache_dir())
        except StartError as error:
            error.message = error.message.replace(folder, name)  # nobody knows the folder
            error.args = (error.message,)
            raise
    for note in exported.notes:
        logger.warning("%s: %s", target.name, note.replace(folder, name))
    return str(exported.path)


def _of_module(module: Any, signature: Mapping[str, Any]) -> dict[str, Any]:
    if not getattr(module, "binded", False):
        raise UsageError("the Module is not bound: call bind() and init_params(), or fit(), before it is exported")
    document = dict(signature)
    for plural, shapes in (("inputs", module.data_shapes), ("outputs", module.output_shapes)):
        key = plural[:-1] if plural[:-1] in document else plural
        has = [_entry(shape[0], shape[1]) for shape in shapes]
        if not document.get(key):
            document[key] = has
        elif plural == "inputs":
            _agree([entry["data_name"] for entry in has], [entry.get("data_name") for entry in document[key]])
    return document


def _of_block(signature: Mapping[str, Any]) -> dict[str, Any]:
    if not (signature.get("inputs") or signature.get("input")):
        raise UsageError(
            "the signature has no inputs, and a Gluon block does not tell them: add "
            '"inputs": [{"data_name": "data", "data_shape": [0, …]}]'
        )
    return dict(signature)


def _entry(name: str, shape: Sequence[int]) -> dict[str, Any]:
    return {"data_name": name, "data_shape": [0, *shape[1:]]}


def _agree(has: list[str], given: list[Any]) -> None:
    if sorted(has) != sorted(map(str, given)):
        raise BadArtifact(f"the signature's inputs are {given}, and the Module's are {has}; expected the same")
