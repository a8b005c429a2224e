"""The hooks of every model that has a signature: read tensors, predict them together, write tensors or labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.hooks import defaults
from forecastle.messages import Part
from forecastle.models.signature import Signature
from forecastle.runtimes.batching import Item, Prediction, Stacker, TensorModel
from forecastle.runtimes.reading import Reader

_JSON_FIRST = (("*/*", 1), (media.JSON, 1))
"""Where one of these leads what a client accepts, JSON is the answer."""


class TensorRuntime:
    """Hooks over a ``TensorModel``, which ``load`` makes when the model is loaded.

    ``adopt`` makes one of what a user's ``model_fn`` returned, or returns ``None`` where that is nothing it knows.
    """

    def __init__(
        self, load: Callable[[], TensorModel], adopt: Callable[[Any], TensorModel | None] | None = None
    ) -> None:
        self._load = load
        self._adopt = adopt
        self.signature: Signature | None = None

    def model_fn(self, model_dir: str) -> TensorModel:  # noqa: ARG002 -- the artifact says where it lies
        """Load the model; the other hooks may be called from then on."""
        model = self._load()
        self._use(model)
        return model

    def adopt_fn(self, model: Any) -> bool:
        """Say whether the other hooks can serve a model that a user's ``model_fn`` returned; if so, they now do."""
        adopted = None if self._adopt is None else self._adopt(model)
        if adopted is not None:
            self._use(adopted)
        return adopted is not None

    def _use(self, model: TensorModel) -> None:
        self.signature = model.signature
        self._reader = Reader(model.signature, model.columns, missing=model.missing)
        self._stacker = Stacker(model)
        self._names = [tensor.name for tensor in model.signature.outputs]

    def inputs_fn(self, parts: list[Part]) -> Item:
        """Read a request's parts: see ``Reader``."""
        return self._reader.read(parts)

    def predict_fn(self, data: Any, model: Any) -> Prediction:
        """Predict one item, or what a user's ``input_fn`` made of the request."""
        return self.predict_batch_fn([data], model)[0]

    def predict_batch_fn(self, batch: list[Any], model: Any) -> list[Prediction]:  # noqa: ARG002
        """Predict items together where they fit together."""
        return self._stacker.predict([self._reader.value(item) for item in batch])

    def output_fn(self, prediction: Any, accept: MIMEAccept) -> tuple[bytes, str]:
        """Write a prediction as JSON, a single array also as NPY or CSV, several as NPZ."""
        if not isinstance(prediction, Prediction):
            return defaults.output_fn(prediction, accept)
        if accept and accept[0] not in _JSON_FIRST:
            value = self._arrays(prediction)
            # A line of CSV is a row: one record's needs its axis of rows back.
            table = value[None] if prediction.single and isinstance(value, np.ndarray) else value
            content_type = media.negotiate(accept, media.offers(table))
            if content_type != media.JSON:
                return media.encode(table if content_type == media.CSV else value, content_type), content_type
        plain = [entry.tolist() if isinstance(entry, np.ndarray | np.generic) else entry for entry in prediction]
        return media.encode(plain, media.JSON), media.JSON

    def _arrays(self, prediction: Prediction) -> Any:
        """Return the array of the one output, those of several by name, or a list where an output is no array."""
        arrays = [np.asarray(entry) if isinstance(entry, np.generic) else entry for entry in prediction]
        if not all(isinstance(array, np.ndarray) for array in arrays):
            return [[entry] for entry in arrays]
        return arrays[0] if len(arrays) == 1 else dict(zip(self._names, arrays, strict=True))
