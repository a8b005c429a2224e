"""Predicting items together: stack those that fit, run the model once, and give every item its own rows back.

Items are stacked only with items of the same trailing shapes (names and types are the model's, the same for all), and
only by a model whose inputs and outputs all have a free first axis. What that axis is can be wrong in a signature, so
the outputs' rows are counted: where they are not the rows that went in, the items are run one by one, now and from then
on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from forecastle.errors import BadOutput
from forecastle.models.signature import Signature
from forecastle.runtimes.classify import classifies, top_five
from forecastle.runtimes.convert import Array, numpy_dtype

logger = logging.getLogger(__name__)

Run = Callable[[dict[str, Array]], Sequence[Any]]


@dataclass(frozen=True)
class TensorModel:
    """A loaded model: what it takes and gives, and how to run it.

    ``run`` takes an array for each of the signature's inputs, by name, and returns the outputs in the signature's
    order: arrays, or lists of what is no tensor. ``labels`` are a classifier's, in the order of its scores; ``columns``
    are the names of the one input's features, by which records may come. ``missing`` says that a feature may be null,
    or an empty cell of CSV; it becomes NaN.
    """

    signature: Signature
    run: Run
    labels: list[str] | None = None
    columns: list[str] | None = None
    missing: bool = False


class Item(msgspec.Struct, frozen=True, gc=False):
    """One request's input: a value for each of the model's inputs, in the signature's order.

    A value is an array with the batch axis in front, or, read by the quick path, a list of rows of floats that is
    converted with those of its batch. ``shapes`` are the values' shapes without that axis, ``rows`` its length.
    ``single`` says that the client sent one record without it.
    """

    values: tuple[Array | list[list[float]], ...]
    shapes: tuple[tuple[int, ...], ...]
    rows: int
    single: bool


class Prediction(list[Any]):
    """A model's answer to one item: one entry for each of its outputs.

    An entry is an array (a numpy scalar for one number), for a classifier with labels the five best of each row, or a
    list of what is no tensor. A ``single`` item's entries have no batch axis.
    """

    __slots__ = ("single",)

    def __init__(self, entries: Sequence[Any], single: bool) -> None:
        super().__init__(entries)
        self.single = single


class Stacker:
    """Runs a model over items."""

    def __init__(self, model: TensorModel) -> None:
        self._run = model.run
        self._labels = model.labels
        self._inputs = [(tensor.name, numpy_dtype(tensor.dtype)) for tensor in model.signature.inputs]
        # An output's shape may be unknown, which is written as that of a scalar.
        self._stacks = all(tensor.shape[:1] == (None,) for tensor in model.signature.inputs) and all(
            tensor.shape[:1] in {(), (None,)} for tensor in model.signature.outputs
        )
        self._row_by_row = any(tensor.shape[:1] == (1,) for tensor in model.signature.inputs)

    def predict(self, items: list[Item]) -> list[Prediction]:
        """Return one prediction for each item, in order."""
        groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        for index, item in enumerate(items):
            groups.setdefault(item.shapes, []).append(index)
        predictions: list[Any] = [None] * len(items)
        for group in groups.values():
            for index, prediction in zip(group, self._group([items[index] for index in group]), strict=True):
                predictions[index] = prediction
        return predictions

    def _group(self, items: list[Item]) -> list[Prediction]:
        if len(items) > 1 and self._stacks:
            outputs = self._run(self._stack(items))
            rows = sum(item.rows for item in items)
            if all(_has_rows(output, rows) for output in outputs):
                return self._split(outputs, items, rows)
            logger.warning("the model's outputs have not the rows of its inputs; from now on its items run one by one")
            self._stacks = False
        return [self._alone(item) for item in items]

    def _alone(self, item: Item) -> Prediction:
        feed = self._stack([item])
        if item.rows == 1 or not self._row_by_row:
            outputs = self._run(feed)
        else:
            runs = [
                self._run({name: array[row : row + 1] if array.ndim else array for name, array in feed.items()})
                for row in range(item.rows)
            ]
            outputs = [_joined(parts) for parts in zip(*runs, strict=True)]
        return self._split(outputs, [item], item.rows)[0]

    def _stack(self, items: list[Item]) -> dict[str, Array]:
        feed = {}
        for index, (name, dtype) in enumerate(self._inputs):
            values = [item.values[index] for item in items]
            if all(isinstance(value, list) for value in values):
                # One conversion for all: far cheaper than one for each.
                feed[name] = _converted([row for value in values for row in value], dtype)
            elif len(values) == 1:
                feed[name] = np.asarray(values[0])
            else:
                feed[name] = np.concatenate([_converted(value, dtype) for value in values])
        return feed

    def _split(self, outputs: Sequence[Any], items: list[Item], rows: int) -> list[Prediction]:
        named = [self._named(output, rows) for output in outputs]
        if len(items) == 1 and not all(_has_rows(output, rows) for output in named):
            single = items[0].single
            entries = [output[0] if single and _has_rows(output, rows) else output for output in named]
            return [Prediction(entries, single)]
        predictions, start = [], 0
        for item in items:
            end = start + item.rows
            entries = [output[start] if item.single else output[start:end] for output in named]
            predictions.append(Prediction(entries, item.single))
            start = end
        return predictions

    def _named(self, output: Any, rows: int) -> Any:
        """Put a classifier's labels to its scores; leave any other output as it is."""
        if self._labels is None or not isinstance(output, np.ndarray) or not _has_rows(output, rows):
            return output
        scores = classifies(output, self._labels)
        return output if scores is None else top_five(scores, self._labels)


def _has_rows(output: Any, rows: int) -> bool:
    if isinstance(output, np.ndarray):
        return bool(output.shape[:1] == (rows,))
    return isinstance(output, list) and len(output) == rows


def _converted(value: Array | list[list[float]], dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype)


def _joined(parts: Sequence[Any]) -> Any:
    if not all(_has_rows(part, 1) for part in parts):
        raise BadOutput("the model takes one row at a time and its output has no axis of rows; send one record")
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [entry for part in parts for entry in part]
