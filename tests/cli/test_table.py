from __future__ import annotations

import io

import pytest

from forecastle.cli import table
from forecastle.serving.router import ModelInfo, ReplicaStatus


def model(name: str, *states: str, runtime: str = "onnx") -> ModelInfo:
    return ModelInfo(
        name=name,
        version="1",
        required=True,
        runtime=runtime,
        signature=None,
        batch_strategy="MultiRecord",
        max_concurrent_transforms=1,
        max_payload_in_mb=6,
        replicas=[ReplicaStatus(index, state) for index, state in enumerate(states)],
    )


def test_a_pipe_gets_aligned_columns_and_the_ready_line_last() -> None:
    out = io.StringIO()
    table.show([model("a", "ready"), model("longer", "ready", "failed", runtime="")], "http://h:1", "http://h:2", out)
    assert out.getvalue() == (
        "model   version  runtime  replicas  state              endpoints\n"
        "a       1        onnx     1         ready              /a/predict\n"
        "longer  1        -        2         1 ready, 1 failed  /longer/predict\n"
        "ready on http://h:1, management on http://h:2\n"
    )


def test_a_terminal_gets_a_drawn_table_and_whole_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "80")
    out = Terminal()
    table.show([model("resnet-18", "ready")], "http://127.0.0.1:8080", "http://127.0.0.1:8081", out)
    assert "/resnet-18/predict" in out.getvalue()
    assert "\nready on http://127.0.0.1:8080, management on http://127.0.0.1:8081\n" in out.getvalue()


def test_invocations_is_shown_only_for_a_single_model() -> None:
    assert table.rows([model("a", "ready")])[0][-1] == "/a/predict /invocations"
    assert [row[-1] for row in table.rows([model("a"), model("b")])] == ["/a/predict", "/b/predict"]


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("example.org", "http://example.org:80"),
    ],
)
def test_an_address_is_shown_as_one_can_type_it(host: str, shown: str) -> None:
    assert table.url(host, 80) == shown
