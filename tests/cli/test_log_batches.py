from __future__ import annotations

import re
from pathlib import Path

from cli.process import eventually, serving

HOOKS = "def predict_batch_fn(batch, model):\n    return batch\n"
LINE = (
    r"batch of (\d+) for m version 1 \((all that waits|pays|in time|trial|limit)\): foretold [\d.]+ ms, took [\d.]+ ms"
)


def test_each_batch_is_logged_with_its_size_its_reason_and_its_time_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(HOOKS)
    with serving("m=m.py", "--log-batches", folder=tmp_path) as server:
        for _ in range(3):
            assert server.post("/invocations", b"[1]").status_code == 200
        eventually(lambda: len(re.findall(LINE, server.log)) == 3, "three lines")


def test_otherwise_none_is(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(HOOKS)
    with serving("m=m.py", "--log-level", "debug", folder=tmp_path) as server:
        assert server.post("/invocations", b"[1]").status_code == 200
        assert "batch of" not in server.log
