"""Texts, as services handle them."""

from __future__ import annotations

from forecastle.runtimes.service.nlp import encode_sentences, pad_sentence

__all__ = ("encode_sentences", "pad_sentence")
