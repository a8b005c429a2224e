"""TorchServe's base class of handlers: it loads the archive's PyTorch model, and has a method for each step.

https://github.com/pytorch/serve/blob/master/ts/torch_handler/base_handler.py
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import torch

from forecastle.errors import LoadFailed
from forecastle.runtimes.handler.context import Context


class BaseHandler:
    """A handler in three steps: ``preprocess``, ``inference``, ``postprocess``; a class replaces which it likes.

    ``model`` is the archive's, in evaluation; ``mapping`` what ``index_to_name.json`` holds, ``None`` without one.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.mapping: Any = None
        self.device: Any = None
        self.map_location = "cpu"
        self.initialized = False
        self.context: Context | None = None
        self.manifest: dict[str, Any] = {}
        self.explain = False
        self.target = 0

    def initialize(self, context: Context) -> None:
        """Load the model: TorchScript, or the only class of ``modelFile`` with the weights of ``serializedFile``.

        Raises:
            LoadFailed: the manifest names no such file, or ``modelFile`` has no class, or several.
        """
        self.context, self.manifest = context, context.manifest
        self.device = torch.device(self.map_location)
        folder = Path(str(context.system_properties["model_dir"]))
        described = self.manifest.get("model", {})
        weights, program = described.get("serializedFile", ""), described.get("modelFile", "")
        if program:
            self.model = _eager(folder / Path(program).name)()
            if weights:
                self.model.load_state_dict(torch.load(folder / weights, self.map_location, weights_only=True))
        elif weights:
            self.model = torch.jit.load(str(folder / weights), self.map_location)
        else:
            raise LoadFailed("the manifest names neither a serializedFile nor a modelFile; BaseHandler loads one")
        self.model.to(self.device).eval()
        names = folder / "index_to_name.json"
        self.mapping = json.loads(names.read_text("utf-8")) if names.is_file() else None
        self.initialized = True

    def preprocess(self, data: Any) -> Any:
        """Make of a batch of fields what ``inference`` takes: a tensor of their ``data``, or of their ``body``."""
        rows = [row.get("data", row.get("body")) if isinstance(row, dict) else row for row in data]
        return torch.as_tensor(rows, device=self.device)

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        with torch.inference_mode():
            return self.model(data.to(self.device), *args, **kwargs)

    def postprocess(self, data: Any) -> Any:
        """Make of the model's output a list with an entry for each request."""
        return data.tolist()

    def handle(self, data: Any, context: Context) -> Any:
        """Answer a batch, in three steps."""
        self.context = context
        return self.postprocess(self.inference(self.preprocess(data)))


def _eager(path: Path) -> Any:
    """Return the only class of PyTorch's that a file defines."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    found = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == path.stem]
    models = [value for value in found if issubclass(value, torch.nn.Module)]
    leaves = [one for one in models if not any(one in other.__mro__[1:] for other in models)]
    if len(leaves) != 1:
        names = ", ".join(one.__name__ for one in leaves) or "none"
        raise LoadFailed(f"{path.name} must define exactly one torch.nn.Module; it has {names}")
    return leaves[0]
