"""EfficientNet-lite0 as an MXNet network: the symbol, and the weights under MXNet's names.

The network of https://github.com/tensorflow/tpu/tree/master/models/official/efficientnet/lite: EfficientNet-B0 without
squeeze-and-excitation, with ReLU6 for swish, and with stem and head of a fixed width. The weights are TensorFlow's,
ported to PyTorch, so two of TensorFlow's habits are kept: ``SAME`` padding, which puts the odd row and column of a
strided convolution after the picture, and a batch-normalisation epsilon of 1e-3.

The input ``data`` is raw RGB, 0 to 255, NCHW, 224 by 224: the normalisation is part of the graph, as whoever posts a
picture to a server cannot be asked to know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from forecastle.runtimes.mxnet.symbol import Edge, SymbolBuilder

Arrays = dict[str, npt.NDArray[Any]]

INPUT_SHAPE = (None, 3, 224, 224)
CLASSES = 1000


class Stage(NamedTuple):
    """Blocks of one width: the first of them has the stride, the rest add their input to their output."""

    blocks: int
    kernel: int
    stride: int
    expand: int
    channels: int


STEM = 32
STAGES = (
    Stage(blocks=1, kernel=3, stride=1, expand=1, channels=16),
    Stage(blocks=2, kernel=3, stride=2, expand=6, channels=24),
    Stage(blocks=2, kernel=5, stride=2, expand=6, channels=40),
    Stage(blocks=3, kernel=3, stride=2, expand=6, channels=80),
    Stage(blocks=3, kernel=5, stride=1, expand=6, channels=112),
    Stage(blocks=4, kernel=5, stride=2, expand=6, channels=192),
    Stage(blocks=1, kernel=3, stride=1, expand=6, channels=320),
)
HEAD = 1280


def build(state: Mapping[str, npt.NDArray[Any]]) -> tuple[bytes, Arrays]:
    """Make ``symbol.json`` and the parameters, prefixed ``arg:`` and ``aux:``, from the PyTorch state dictionary.

    Every tensor of ``state`` is used but the counters ``num_batches_tracked``, which only training reads; one that is
    missing raises `KeyError`, one too many `ValueError`: then these are another network's weights.
    """
    network = _Network(state)
    head = network.classifier()
    unused = {name for name in state if not name.endswith("num_batches_tracked")} - network.used
    if unused:
        raise ValueError(f"the weights have tensors that EfficientNet-lite0 lacks: {', '.join(sorted(unused))}")
    return network.builder.write(head), network.arrays


class _Network:
    def __init__(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.builder = SymbolBuilder()
        self.arrays: Arrays = {}
        self.used: set[str] = set()
        self._state = state

    def classifier(self) -> Edge:
        op = self.builder.op
        centred = op("_minus_scalar", "centre", [self.builder.variable("data")], scalar=127.0)
        x = op("_mul_scalar", "scale", [centred], scalar=1 / 128)
        x = self.convolution(x, "stem", ("_conv_stem", "_bn0"), STEM, kernel=3, stride=2)
        x = self.convolution(self.stages(x), "head", ("_conv_head", "_bn1"), HEAD)
        x = op("Pooling", "pool", [x], global_pool=True, kernel=(7, 7), pool_type="avg")
        x = op("Flatten", "flatten", [x])
        weights = [self.parameter("fc_weight", "_fc.weight"), self.parameter("fc_bias", "_fc.bias")]
        x = op("FullyConnected", "fc", [x, *weights], num_hidden=CLASSES)
        return op("SoftmaxOutput", "softmax", [x, self.builder.variable("softmax_label")])

    def stages(self, x: Edge) -> Edge:
        width, index = STEM, 0
        for stage in STAGES:
            for block in range(stage.blocks):
                x = self.block(x, index, width, stage, stage.stride if block == 0 else 1)
                width, index = stage.channels, index + 1
        return x

    def block(self, x: Edge, index: int, width: int, stage: Stage, stride: int) -> Edge:
        """Widen each pixel, convolve each channel by itself, narrow again; where the shape allows, add the input."""
        name, theirs, wide = f"block{index}", f"_blocks.{index}.", width * stage.expand
        y = x
        if stage.expand > 1:
            y = self.convolution(y, f"{name}_expand", (f"{theirs}_expand_conv", f"{theirs}_bn0"), wide)
        layers = (f"{theirs}_depthwise_conv", f"{theirs}_bn1")
        y = self.convolution(y, f"{name}_dw", layers, wide, kernel=stage.kernel, stride=stride, groups=wide)
        layers = (f"{theirs}_project_conv", f"{theirs}_bn2")
        y = self.convolution(y, f"{name}_project", layers, stage.channels, activated=False)
        if stride == 1 and width == stage.channels:
            y = self.builder.op("elemwise_add", f"{name}_add", [y, x])
        return y

    def convolution(
        self,
        x: Edge,
        name: str,
        theirs: tuple[str, str],
        channels: int,
        *,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        activated: bool = True,
    ) -> Edge:
        """Convolution, batch normalisation and, where ``activated``, ReLU6; ``theirs`` names the two in the state."""
        op = self.builder.op
        # SAME padding of an even side: kernel - stride rows in all, the odd one after the picture.
        before = (kernel - stride) // 2
        after = kernel - stride - before
        if before != after:
            x = op("Pad", f"{name}_pad", [x], mode="constant", pad_width=(0, 0, 0, 0, before, after, before, after))
            before = 0
        y = op(
            "Convolution",
            name,
            [x, self.parameter(f"{name}_weight", f"{theirs[0]}.weight")],
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(before, before),
            num_filter=channels,
            num_group=groups,
            no_bias=True,
        )
        norm = [
            self.parameter(f"{name}_bn_gamma", f"{theirs[1]}.weight"),
            self.parameter(f"{name}_bn_beta", f"{theirs[1]}.bias"),
            self.parameter(f"{name}_bn_moving_mean", f"{theirs[1]}.running_mean", kind="aux"),
            self.parameter(f"{name}_bn_moving_var", f"{theirs[1]}.running_var", kind="aux"),
        ]
        y = op("BatchNorm", f"{name}_bn", [y, *norm], eps=1e-3, fix_gamma=False)
        return op("clip", f"{name}_relu6", [y], a_min=0.0, a_max=6.0) if activated else y

    def parameter(self, name: str, theirs: str, *, kind: str = "arg") -> Edge:
        self.arrays[f"{kind}:{name}"] = np.asarray(self._state[theirs])
        self.used.add(theirs)
        return self.builder.variable(name)
