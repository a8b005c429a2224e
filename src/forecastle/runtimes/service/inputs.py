"""From a request's parts to the values that a service is given: bytes of pictures, and what JSON holds."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from forecastle import media
from forecastle.errors import BadInput
from forecastle.messages import Part
from forecastle.models.signature import Signature
from forecastle.runtimes.reading import parsed
from forecastle.runtimes.vision import FORMATS, is_picture


class ServiceReader:
    """Reads requests for one service: a value for each input, in the signature's order."""

    def __init__(self, signature: Signature) -> None:
        self._inputs = signature.inputs
        self._pictures = signature.input_type.startswith("image/")
        self._names = {tensor.name: index for index, tensor in enumerate(signature.inputs)}
        for index in range(len(signature.inputs)):
            self._names.setdefault(f"input{index}", index)

    def read(self, parts: list[Part]) -> list[Any]:
        """Read one request: a form with a field for each input, by its name or as ``input0``, or a raw body.

        A raw body is the first input, or an object with a value for each of them.

        Raises:
            BadInput: an input is missing, unknown, given twice, no picture or no JSON; the message names it.
        """
        if len(parts) == 1 and not parts[0].name:
            value = self._value(parts[0], self._inputs[0].name)
            named = isinstance(value, dict) and value.keys() and value.keys() <= self._names.keys()
            pairs = list(value.items()) if named else [(self._inputs[0].name, value)]
        else:
            pairs = [(part.name, self._value(part, part.name)) for part in parts]
        values: dict[int, Any] = {}
        for name, value in pairs:
            index = self._names.get(name)
            if index is None:
                raise BadInput(f"there is no input for the field {name[:100]!r}; expected {self._expected()}")
            if index in values:
                raise BadInput(f"the input {self._inputs[index].name!r} was sent twice; the second time as {name!r}")
            values[index] = value
        missing = [tensor.name for index, tensor in enumerate(self._inputs) if index not in values]
        if missing:
            raise BadInput(f"the input {missing[0]!r} is missing; expected {self._expected()}")
        return [values[index] for index in range(len(self._inputs))]

    def _value(self, part: Part, name: str) -> Any:
        if not part.data:
            raise BadInput(f"the input {name[:100]!r} is empty; expected {self._expected()}")
        if not self._pictures:
            return parsed(part, name, literal=bool(part.name) or not media.is_json(part.content_type))
        if is_picture(part.data):
            return part.data
        # A picture as the value of a form's field, rather than its file, is base64 text.
        try:
            data = base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if not is_picture(data):
            raise BadInput(f"the input {name[:100]!r} is no picture; expected one of {', '.join(FORMATS)}")
        return data

    def _expected(self) -> str:
        return " and ".join(
            f"{tensor.name!r} (or 'input{index}')" if tensor.name != f"input{index}" else repr(tensor.name)
            for index, tensor in enumerate(self._inputs)
        )
