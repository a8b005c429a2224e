"""Texts as services handle them: words to numbers, and sentences to a length that a network was made for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forecastle.errors import BadInput, PredictionFailed
from forecastle.runtimes.service.arrays import NDArray, array


class DataDesc(NamedTuple):
    """The name and shape of one input."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class DataBatch:
    """A sentence as an input: ``data`` holds one array, ``bucket_key`` is the length it was filled up to."""

    data: list[NDArray]
    bucket_key: int
    provide_data: list[DataDesc]


def encode_sentences(
    sentences: Iterable[Iterable[Any]],
    vocab: dict[Any, int] | None = None,
    invalid_label: int = -1,
    invalid_key: Any = "\n",
    start_label: int = 0,
) -> tuple[list[list[int]], dict[Any, int]]:
    """Replace the words of each sentence by their numbers, and return these with the vocabulary.

    A word that a given vocabulary lacks becomes ``invalid_label``. Without one, a vocabulary is made: it holds
    ``invalid_key`` for ``invalid_label``, and numbers each new word from ``start_label`` on, without that label.
    """
    known = {invalid_key: invalid_label} if vocab is None else vocab
    following = start_label
    encoded = []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in known and vocab is None:
                following += following == invalid_label
                known[word] = following
                following += 1
            numbers.append(known.get(word, invalid_label))
        encoded.append(numbers)
    return encoded, known


def pad_sentence(
    sentence: Sequence[int],
    buckets: Sequence[int],
    invalid_label: int = -1,
    data_name: str = "data",
    layout: str = "NT",
) -> DataBatch:
    """Fill a sentence up with ``invalid_label`` to the smallest of the lengths in ``buckets`` that holds it.

    ``layout`` says whether the sentences' axis comes first (NT) or that of the words (TN).

    Raises:
        BadInput: the sentence is longer than the largest bucket.
        PredictionFailed: there is no bucket, or ``layout`` is neither.
    """
    if not buckets:
        raise PredictionFailed("nlp.pad_sentence: buckets is empty; expected the lengths that the network was made for")
    if layout not in {"NT", "TN"}:
        raise PredictionFailed(f"nlp.pad_sentence: layout is {layout!r}; expected 'NT' or 'TN'")
    fitting = [bucket for bucket in buckets if bucket >= len(sentence)]
    if not fitting:
        raise BadInput(f"the sentence has {len(sentence)} words; the model takes at most {max(buckets)}")
    length = min(fitting)
    row = np.full((1, length), invalid_label, np.float32)
    row[0, : len(sentence)] = sentence
    data = array(row if layout == "NT" else row.T)
    return DataBatch([data], length, [DataDesc(data_name, data.shape)])
