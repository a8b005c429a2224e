"""Object detection: the boxes that a detector's answers are relative to."""

from __future__ import annotations

import numpy as np

from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator


@operator("MultiBoxPrior", "_contrib_MultiBoxPrior")
def multibox_prior(graph: Graph, call: Call) -> str:
    """Boxes (left, top, right, bottom; 0 to 1) around each cell of a feature map: a constant (1, boxes, 4).

    Each cell has a box of every size at the first ratio, then the first size at every other ratio.
    """
    attributes = call.attributes
    height, width = graph.known_sizes(call.inputs[0], (2, 3))
    sizes, ratios = attributes.numbers("sizes", (1.0,)), attributes.numbers("ratios", (1.0,))
    steps, offsets = attributes.numbers("steps", (-1.0, -1.0)), attributes.numbers("offsets", (0.5, 0.5))
    step_y, step_x = (step if step > 0 else 1 / cells for step, cells in zip(steps, (height, width), strict=True))
    aspect = height / width
    halves = [(size * aspect / 2, size / 2) for size in sizes]
    halves += [(sizes[0] * aspect * ratio**0.5 / 2, sizes[0] / ratio**0.5 / 2) for ratio in ratios[1:]]
    y, x = np.meshgrid(
        (np.arange(height) + offsets[0]) * step_y, (np.arange(width) + offsets[1]) * step_x, indexing="ij"
    )
    boxes = [np.stack([x - half_x, y - half_y, x + half_x, y + half_y], axis=-1) for half_x, half_y in halves]
    priors = np.stack(boxes, axis=2).reshape(1, -1, 4)
    return graph.constant(np.clip(priors, 0, 1) if attributes.flag("clip") else priors)
