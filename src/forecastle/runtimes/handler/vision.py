"""TorchServe's handlers of pictures, on Pillow: ``VisionHandler``, and ``ImageClassifier``, its ``image_classifier``.

https://github.com/pytorch/serve/blob/master/ts/torch_handler/vision_handler.py
https://github.com/pytorch/serve/blob/master/ts/torch_handler/image_classifier.py
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
import torch
from PIL import Image

from forecastle.errors import BadInput
from forecastle.runtimes.handler.torch import BaseHandler
from forecastle.runtimes.vision import decode_image

SIDE, CROP = 256, 224
"""The shorter side of a picture, and the square that is cut from its middle, in pixels."""

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class VisionHandler(BaseHandler):
    """A handler of pictures: a class says in ``image_processing`` what becomes of a picture of Pillow's."""

    def image_processing(self, image: Any) -> Any:
        """Make a tensor of a picture."""
        raise NotImplementedError(f"{type(self).__name__} has no image_processing")

    def preprocess(self, data: Any) -> Any:
        """Make a batch of pictures, each as bytes, base64 text or a list of numbers.

        Raises:
            BadInput: what was sent is no picture.
        """
        return torch.stack([self._tensor(row.get("data", row.get("body"))) for row in data]).to(self.device)

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                raise BadInput("the text that was sent is no picture in base64") from None
        if isinstance(value, bytes | bytearray):
            pixels = decode_image(bytes(value), None, None, dtype="uint8")
            return self.image_processing(Image.fromarray(pixels.transpose(1, 2, 0)))
        if isinstance(value, list):
            return torch.as_tensor(value, dtype=torch.float32)
        raise BadInput("there is no picture: send it as the body, or as the field 'data' of a form")


class ImageClassifier(VisionHandler):
    """A handler for networks trained on ImageNet: the likeliest labels, with their probabilities."""

    topk = 5

    def set_max_result_classes(self, topk: int) -> None:
        """Say how many labels an answer has."""
        self.topk = topk

    def get_max_result_classes(self) -> int:
        """Return how many labels an answer has."""
        return self.topk

    def image_processing(self, image: Any) -> Any:
        """Scale the shorter side to 256 pixels, cut 224 by 224 from the middle, and normalise as ImageNet is."""
        width, height = image.size
        scaled = (SIDE, int(SIDE * height / width)) if width <= height else (int(SIDE * width / height), SIDE)
        image = image.resize(scaled, Image.Resampling.BILINEAR)
        left, top = round((scaled[0] - CROP) / 2), round((scaled[1] - CROP) / 2)
        image = image.crop((left, top, left + CROP, top + CROP))
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
        return (pixels - torch.tensor(_MEAN).reshape(3, 1, 1)) / torch.tensor(_STD).reshape(3, 1, 1)

    def postprocess(self, data: Any) -> list[dict[str, float]]:
        """Name the likeliest labels of each row, by ``index_to_name.json`` or else by their numbers."""
        likely = torch.softmax(data, dim=1)
        probabilities, classes = torch.topk(likely, min(self.topk, likely.shape[1]), dim=1)
        return [
            {self._name(label): probability for label, probability in zip(labels, row, strict=True)}
            for labels, row in zip(classes.tolist(), probabilities.tolist(), strict=True)
        ]

    def _name(self, label: int) -> str:
        name = (self.mapping or {}).get(str(label), str(label))
        return str(name[-1] if isinstance(name, list) and name else name)
