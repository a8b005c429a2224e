from __future__ import annotations

import json
from pathlib import Path

from cli.process import SHIPPING, serving


def test_log_and_metrics_go_where_they_are_told_to(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(SHIPPING)
    options = ("--log-file", "logs/server.log", "--log-format", "json", "--metrics-write-to", "csv")
    with serving("m.py", *options, folder=tmp_path) as server:
        assert server.post("/m/predict", b'{"location": "Wight"}').status_code == 200
        server.process.terminate()
        assert server.end() == 0
        records = [json.loads(line) for line in server.log.splitlines()]
    assert records[0]["message"].startswith("listening on port")
    assert (tmp_path / "logs" / "server.log").read_text().splitlines() == server_lines(records)
    assert (tmp_path / "metrics" / "m_PredictionTotal.csv").read_text().endswith("Z, 1\n")


def server_lines(records: list[dict[str, str]]) -> list[str]:
    return [json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in records]
