"""Services over a network, as MMS's package spells them."""

from __future__ import annotations

from forecastle.runtimes.service.base import ModelService, SingleNodeService
from forecastle.runtimes.service.classes import GluonImperativeBaseService, MXNetBaseService, check_input_shape

__all__ = ("GluonImperativeBaseService", "MXNetBaseService", "ModelService", "SingleNodeService", "check_input_shape")
