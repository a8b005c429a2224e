"""The functions for services, as classes of static methods: the first version's code has them so."""

from __future__ import annotations

from forecastle.runtimes.service import image, ndarray, nlp


class Image:
    """Pictures."""

    read = staticmethod(image.read)
    write = staticmethod(image.write)
    resize = staticmethod(image.resize)
    fixed_crop = staticmethod(image.fixed_crop)
    color_normalize = staticmethod(image.color_normalize)
    transform_shape = staticmethod(image.transform_shape)


class NLP:
    """Texts."""

    encode_sentences = staticmethod(nlp.encode_sentences)
    pad_sentence = staticmethod(nlp.pad_sentence)


class NDArray:
    """Outputs."""

    top_probability = staticmethod(ndarray.top_probability)
