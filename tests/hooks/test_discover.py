from __future__ import annotations

from pathlib import Path

import pluggy
import pytest

from forecastle.errors import LoadFailed
from forecastle.hooks import discover
from forecastle.hooks.spec import HOOKS


def hook_file(tmp_path: Path, text: str, name: str = "hooks_under_test.py") -> pluggy.PluginManager:
    path = tmp_path / name
    path.write_text(text)
    return discover.from_file(path)


def test_the_specification_lists_the_eight_hooks_of_the_contract_and_ours() -> None:
    assert set(HOOKS) == {
        *("model_fn", "input_fn", "predict_fn", "output_fn", "ping_fn"),
        *("batch_strategy", "max_concurrent_transforms", "max_payload_in_mb"),
        *("predict_batch_fn", "transform_fn", "pre_model_fn", "model_warmup_fn"),
    }


def test_plain_functions_with_names_of_their_own_are_called_by_position(tmp_path: Path) -> None:
    manager = hook_file(tmp_path, "def input_fn(request_body, request_content_type):\n    return request_body\n")
    assert manager.hook.input_fn(input_data=b"x", content_type="t") == b"x"


def test_a_plain_function_may_take_fewer_arguments(tmp_path: Path) -> None:
    manager = hook_file(
        tmp_path, "def model_fn():\n    return 'm'\ndef output_fn(prediction):\n    return prediction\n"
    )
    assert manager.hook.model_fn(model_dir="d") == "m"
    assert manager.hook.output_fn(prediction=1, accept=None) == 1


@pytest.mark.parametrize("module", ["forecastle", "inference_server"])
def test_marked_functions_of_either_package_are_found(tmp_path: Path, module: str) -> None:
    text = f"import {module}\n@{module}.plugin_hook\ndef predict_fn(data, model):\n    return data + model\n"
    assert hook_file(tmp_path, text).hook.predict_fn(data=1, model=2) == 3


def test_a_marked_function_may_leave_arguments_out(tmp_path: Path) -> None:
    text = "import forecastle\n@forecastle.plugin_hook\ndef predict_fn(data):\n    return data\n"
    assert hook_file(tmp_path, text).hook.predict_fn(data=1, model=2) == 1


def test_a_module_beside_the_file_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "helper_under_test.py").write_text("VALUE = 7\n")
    text = "import helper_under_test\ndef model_fn(model_dir):\n    return helper_under_test.VALUE\n"
    assert hook_file(tmp_path, text).hook.model_fn(model_dir="") == 7


def test_a_file_without_hooks_is_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match=r"hooks_under_test\.py defines no hook.*model_fn"):
        hook_file(tmp_path, "def predict(x):\n    return x\n")


def test_a_plain_function_that_asks_too_much_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match=r"predict_fn takes \(a, b, c\).*called with \(data, model\)"):
        hook_file(tmp_path, "def predict_fn(a, b, c):\n    return a\n")


def test_a_marked_function_with_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    text = "import forecastle\n@forecastle.plugin_hook\ndef predict_fn(data, network):\n    return data\n"
    with pytest.raises(LoadFailed, match="network"):
        hook_file(tmp_path, text)
