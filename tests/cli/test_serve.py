from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.cli.serve import PLUGINS, checked, specs
from forecastle.cluster.specs import ModelSpec, ServerOptions
from forecastle.errors import UsageError
from forecastle.hooks.discover import ENTRY_POINTS


def test_models_of_the_command_line_take_the_place_of_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "forecastle.toml"
    file.write_text('[models]\na = "x.py"\n')
    assert specs((), ServerOptions(), file) == [ModelSpec("a", "x.py")]
    assert specs(("b=y.py", "z.py"), ServerOptions(), file) == [ModelSpec("b", "y.py"), ModelSpec("z", "z.py")]


def test_no_model_at_all_is_refused_with_an_example() -> None:
    with pytest.raises(UsageError, match=r"no model to serve.*forecastle serve shipping=shipping\.py"):
        specs((), ServerOptions(), None)


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two models are called 'a'"):
        specs(("a=x.py", "a=y.py"), ServerOptions(), None)


def test_replicas_of_a_model_that_is_not_served_are_refused() -> None:
    with pytest.raises(UsageError, match="replicas are set for 'b', but no such model is served; there is a"):
        specs(("a=x.py",), ServerOptions(replicas={"b": 2}), None)
    assert specs(("a=x.py",), ServerOptions(replicas={"*": 2}), None)[0].replicas == 2


def test_predictions_and_management_cannot_share_a_port() -> None:
    with pytest.raises(UsageError, match="port and management_port are both 8081"):
        checked(ServerOptions(port=8081))
    assert checked(ServerOptions(port=0, management_port=0)).port == 0


def test_plugins_are_looked_for_where_replicas_find_them() -> None:
    assert PLUGINS == ENTRY_POINTS
