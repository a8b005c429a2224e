from __future__ import annotations

import pluggy
from werkzeug.datastructures import MIMEAccept

import inference_server


def test_a_hook_is_marked_for_the_project_inference_server() -> None:
    @inference_server.plugin_hook
    def ping_fn(model: object) -> bool:
        return model is not None

    @inference_server.plugin_hook(trylast=True)
    def model_fn(model_dir: str) -> str:
        return model_dir

    manager = pluggy.PluginManager("inference_server")
    for function, trylast in ((ping_fn, False), (model_fn, True)):
        options = manager.parse_hookimpl_opts(type("Plugin", (), {"hook": staticmethod(function)}), "hook")
        assert options is not None
        assert options["trylast"] is trylast


def test_the_names_of_the_contract_are_there() -> None:
    assert inference_server.MIMEAccept is MIMEAccept
    assert inference_server.BatchStrategy.SINGLE_RECORD.value == "SingleRecord"
    assert inference_server.BatchStrategy.MULTI_RECORD.value == "MultiRecord"
    assert all(hasattr(inference_server, name) for name in inference_server.__all__)
