"""Which engine runs an MMS archive: onnxruntime, once its network is converted, or MXNet in its own environment."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from forecastle.models import mar, mms
from forecastle.models.artifact import Artifact
from forecastle.models.operators import of_symbol
from forecastle.models.services import split_service

Engine = Literal["auto", "onnx", "mxnet"]
NATIVE = "mxnet_native"
"""The runtime of archives that MXNet itself runs."""

CONVERTED = frozenset(
    """
    Activation BatchNorm BatchNorm_v1 BlockGrad Cast Concat Convolution Convolution_v1 CuDNNBatchNorm Deconvolution
    Dropout ElementWiseSum Embedding Flatten FullyConnected IdentityAttachKLSparseReg InstanceNorm L2Normalization
    LRN LayerNorm LeakyReLU LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput MakeLoss
    MultiBoxPrior Pad Pooling Pooling_v1 RNN Reshape SliceChannel Softmax SoftmaxActivation SoftmaxOutput SwapAxis
    UpSampling _Div _DivScalar _Maximum _MaximumScalar _Minimum _MinimumScalar _Minus _MinusScalar _Mul _MulScalar
    _Plus _PlusScalar _Power _PowerScalar _RDivScalar _RMinusScalar _RPowerScalar _contrib_MultiBoxPrior
    _contrib_SyncBatchNorm _copy _div _div_scalar _maximum _maximum_scalar _minimum _minimum_scalar _minus
    _minus_scalar _mul _mul_scalar _ones _plus _plus_scalar _power _power_scalar _rdiv_scalar _rminus_scalar
    _rpower_scalar _zeros abs add_n argmax batch_dot broadcast_add broadcast_div broadcast_maximum broadcast_minimum
    broadcast_minus broadcast_mul broadcast_plus broadcast_power broadcast_sub cast ceil clip concat cos crop dot
    elemwise_add elemwise_div elemwise_mul elemwise_sub erf exp expand_dims flatten floor identity log log_softmax
    make_loss max max_axis mean min min_axis negative ones pad relu reshape sigmoid sin slice slice_axis slice_like
    softmax softsign split sqrt square squeeze stop_gradient sum sum_axis swapaxes tanh transpose zeros
    """.split()  # noqa: SIM905 -- a hundred lines else
)
"""The operators that the importer converts."""


def needs_mxnet(artifact: Artifact) -> str:
    """Say why an archive needs MXNet itself: its code imports it, or an operator is not converted; or nothing."""
    if artifact.runtime == mar.RUNTIME:
        importing = [path.name for path in sorted(Path(artifact.path).glob("*.py")) if "mxnet" in _imports(path)]
        return f"{importing[0]} imports mxnet" if importing else ""
    if artifact.runtime != "mxnet":
        return ""
    where, _ = split_service(artifact.service)
    files = [Path(where), *Path(artifact.path).glob("*.py")] if where.endswith(".py") else []
    importing = [path.name for path in files if path.is_file() and "mxnet" in _imports(path)]
    if importing:
        return f"{importing[0]} imports mxnet"
    used = of_symbol(mms.find_files(Path(artifact.path), artifact.source).symbol)
    missing = [name for name in used if name not in CONVERTED]
    return f"the operator {missing[0]} is run by MXNet alone" if missing else ""


def extra(artifact: Artifact) -> str:
    """Return the extra that an environment of the artifact needs, besides what its requirements say.

    It is that of its runtime. A handler has none; TorchServe has PyTorch for all of them, so that no archive lists it.
    """
    if artifact.runtime != mar.RUNTIME:
        return artifact.runtime
    torch = artifact.service in mar.BUNDLED or any(
        "torch" in _imports(path) or b"ts.torch_handler" in path.read_bytes()
        for path in Path(artifact.path).glob("*.py")
    )
    return "torch" if torch else artifact.runtime


def _imports(path: Path) -> set[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return set()  # whoever imports it says what is wrong
    return {name.partition(".")[0] for node in ast.walk(tree) for name in _names(node)}


def _names(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []
