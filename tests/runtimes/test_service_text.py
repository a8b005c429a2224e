from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadInput, BadOutput, PredictionFailed
from forecastle.runtimes.service.ndarray import top_probability
from forecastle.runtimes.service.nlp import encode_sentences, pad_sentence

WORDS = {f"word{index}": index for index in range(100)}
BUCKETS = [10, 20, 30, 40, 50, 60]


def test_a_given_vocabulary_is_used_as_it_is() -> None:
    sentence = [f"word{index}" for index in (0, 56, 8, 10)]
    encoded, vocabulary = encode_sentences([sentence], dict(WORDS))
    assert encoded == [[0, 56, 8, 10]]
    assert vocabulary == WORDS
    assert encode_sentences([["word1", "unknown"]], dict(WORDS), invalid_label=7) == ([[1, 7]], WORDS)


def test_without_a_vocabulary_one_is_made() -> None:
    encoded, vocabulary = encode_sentences([list(WORDS)])
    assert encoded == [list(range(100))]
    assert len(vocabulary) == 101
    assert vocabulary["\n"] == -1


@given(st.lists(st.lists(st.text(max_size=3))), st.integers(-3, 3), st.integers(-3, 3))
def test_a_made_vocabulary_tells_all_words_apart(sentences: list[list[str]], invalid: int, start: int) -> None:
    encoded, vocabulary = encode_sentences(sentences, invalid_label=invalid, invalid_key=None, start_label=start)
    back = {number: word for word, number in vocabulary.items()}
    assert len(back) == len(vocabulary)
    assert [[back[number] for number in numbers] for numbers in encoded] == sentences


@given(st.lists(st.integers(0, 99), max_size=60))
def test_a_sentence_is_filled_up_to_the_smallest_bucket_that_holds_it(sentence: list[int]) -> None:
    batch = pad_sentence(sentence, BUCKETS)
    assert batch.bucket_key == next(bucket for bucket in BUCKETS if bucket >= len(sentence))
    (row,) = batch.data[0].tolist()
    assert row == sentence + [-1] * (batch.bucket_key - len(sentence))
    assert batch.provide_data == [("data", (1, batch.bucket_key))]


def test_the_words_may_come_first() -> None:
    assert pad_sentence([1, 2], [4], data_name="words", layout="TN").provide_data == [("words", (4, 1))]


def test_a_sentence_that_fits_no_bucket_is_the_client_s_fault() -> None:
    with pytest.raises(BadInput, match="the sentence has 61 words; the model takes at most 60"):
        pad_sentence([0] * 61, BUCKETS)
    with pytest.raises(PredictionFailed, match="buckets is empty"):
        pad_sentence([0], [])
    with pytest.raises(PredictionFailed, match="layout is 'NCHW'"):
        pad_sentence([0], [1], layout="NCHW")


def test_the_best_labels_of_the_first_row_are_named() -> None:
    scores = np.random.default_rng(5).random((2, 100)).astype(np.float32)
    named = top_probability(scores, list(WORDS), top=13)
    assert len(named) == 13
    assert named[0] == {"probability": float(scores[0].max()), "class": f"word{scores[0].argmax()}"}
    assert [entry["probability"] for entry in named] == sorted(scores[0].tolist(), reverse=True)[:13]


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 3), (1, 3, 1, 1)])
def test_scores_may_have_axes_of_one_behind_them(shape: tuple[int, ...]) -> None:
    scores = np.zeros(shape) + np.array([0.2, 0.5, 0.5]).reshape((3,) + (1,) * max(0, len(shape) - 2))
    assert [entry["class"] for entry in top_probability(scores, ["a", "b", "c"])] == ["b", "c", "a"]


def test_one_label_whole_numbers_and_nan_are_ranked_too() -> None:
    assert top_probability(np.array([[7]], np.uint8), ["a"]) == [{"probability": 7.0, "class": "a"}]
    assert [e["class"] for e in top_probability(np.array([1, 200], np.uint8), ["a", "b"])] == ["b", "a"]
    assert [e["class"] for e in top_probability(np.array([math.nan, 1.0]), ["a", "b"])] == ["b", "a"]


@pytest.mark.parametrize("shape", [(1, 4), (1, 3, 2), (0, 3), ()])
def test_another_count_of_scores_than_of_labels_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadOutput, match=r"has not one score for each of the 3 labels; expected \(1, 3\)"):
        top_probability(np.zeros(shape), ["a", "b", "c"])
