"""The services that come with us, under MMS's names: their inference is our engine's, on numpy's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from forecastle.errors import BadOutput
from forecastle.models.signature import Signature
from forecastle.models.synset import read_synset
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.classify import classifies
from forecastle.runtimes.service import engine, image
from forecastle.runtimes.service.arrays import NDArray, array, plain
from forecastle.runtimes.service.base import SingleNodeService, as_dict
from forecastle.runtimes.service.ndarray import top_probability
from forecastle.runtimes.service.tensors import check_count, fitted

_LATER = {"model_name", "model_dir", "manifest"}
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class MXNetBaseService(SingleNodeService):
    """A service over an archive with a symbol, or over another model that has a signature.

    It is made of ``(path, synset=None, ctx=None)``, where the path is an archive or its directory, or as later versions
    of MMS do it, of ``(model_name, model_dir, manifest, gpu=None)``. There is one device, the CPU, whatever is said.

    ``labels`` are those of synset.txt; without one there is no such attribute.
    """

    labels: list[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        three = len(args) > 2 and (isinstance(args[2], Mapping) or engine.is_folder(args[1]))
        if three or kwargs.keys() & _LATER:
            self._from_directory(*args, **kwargs)
        else:
            self._from_path(*args, **kwargs)

    def _from_path(self, path: str, synset: str | None = None, ctx: Any = None) -> None:
        self._use(engine.load(str(path), self.artifact), Path(path).stem, str(path), {}, ctx)
        if synset is not None:
            beside = Path(path) / synset
            self.labels = read_synset(beside if beside.is_file() else Path(synset))

    def _from_directory(self, model_name: str, model_dir: str, manifest: Any = None, gpu: Any = None) -> None:
        self._use(engine.load(str(model_dir), self.artifact), model_name, model_dir, manifest, gpu)

    def _use(self, model: TensorModel, model_name: str, model_dir: str, manifest: Any, ctx: Any) -> None:
        self.model_name, self.model_dir, self.manifest, self.ctx = model_name, str(model_dir), manifest, ctx
        self._model = model
        self._signature = as_dict(model.signature)
        if model.labels is not None:
            self.labels = model.labels

    @property
    def _tensors(self) -> Signature:
        return self._model.signature

    def _preprocess(self, data: list[Any]) -> Any:
        """Decode pictures to the inputs' sizes, and turn lists into arrays."""
        return [array(value) for value in engine.read(data, self._tensors)]

    def _inference(self, data: Any) -> list[NDArray]:
        """Run the model on an array for each input, or on one array; return an array for each output.

        Raises:
            BadOutput: ``_preprocess`` gave another number of arrays, or one of another shape.
        """
        feed = fitted(data, self._tensors.inputs)
        return [array(output) for output in self._model.run(feed)]


class MXNetVisionService(MXNetBaseService):
    """A service that takes pictures, and names the five likeliest labels of each output."""

    def _postprocess(self, data: Any) -> list[Any]:
        check_count(data, self._tensors.outputs)
        labels = getattr(self, "labels", None)
        return [output if labels is None else _named(output, labels) for output in data]


class GluonImperativeBaseService(MXNetBaseService):
    """A service over a network that a program made: ``net`` takes an array for each input and returns the outputs.

    Without a ``net`` it is a service over the archive's symbol.
    """

    def _from_directory(self, model_name: str, model_dir: str, manifest: Any = None, *more: Any, **named: Any) -> None:
        self._with_net(model_name, model_dir, manifest, *more, **named)

    def _with_net(
        self, model_name: str, model_dir: str, manifest: Any, net: Callable[..., Any] | None = None, gpu: Any = None
    ) -> None:
        self.net = net
        if net is None:
            super()._from_directory(model_name, model_dir, manifest, gpu)
        else:
            self._use(engine.around(net, model_dir), model_name, model_dir, manifest, gpu)


class GluonVisionService(GluonImperativeBaseService):
    """A service for networks trained on normalised pictures, whose outputs are scores that softmax makes likely."""

    def _preprocess(self, data: list[Any]) -> list[NDArray]:
        check_count(data, self._tensors.inputs, "inputs")
        pictures = []
        for value, tensor in zip(data, self._tensors.inputs, strict=True):
            pixels = image.read(value)
            height, width = (*tensor.shape, None, None)[2:4]
            pixels = image.resize(pixels, width or pixels.shape[1], height or pixels.shape[0])
            pictures.append(image.transform_shape(image.color_normalize(pixels / 255, _MEAN, _STD)))
        return pictures

    def _postprocess(self, data: Any) -> list[Any]:
        check_count(data, self._tensors.outputs)
        labels = getattr(self, "labels", None)
        likely = [_softmax(plain(output)) for output in data]
        return [output if labels is None else _named(output, labels) for output in likely]


def check_input_shape(inputs: Any, signature: Mapping[str, Any]) -> None:
    """Hold arrays against a signature: their number, and each one's shape but for the batch; 0 stands for any size.

    Raises:
        BadOutput: they do not fit; the message names the input.
    """
    tensors = signature["inputs"]
    check_count(inputs, tensors, "inputs")
    for value, tensor in zip(inputs, tensors, strict=True):
        shape, wanted = getattr(value, "shape", None), tensor["data_shape"]
        if shape is None:
            raise BadOutput(f"the input {tensor['data_name']!r} is {type(value).__name__}; expected an array")
        fits = len(shape) == len(wanted) and all(
            want in {0, got} for want, got in zip(wanted[1:], shape[1:], strict=True)
        )
        if not fits:
            raise BadOutput(f"the input {tensor['data_name']!r} has the shape {tuple(shape)}; expected {wanted}")


def _named(output: Any, labels: list[str]) -> Any:
    scores = classifies(plain(output), labels)
    return output if scores is None else top_probability(scores, labels)


def _softmax(scores: np.ndarray[Any, Any]) -> NDArray:
    axis = 1 if scores.ndim > 1 else 0
    exponents = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return array(exponents / exponents.sum(axis=axis, keepdims=True))
