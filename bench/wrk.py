"""The load: wrk, with a script that sends one body, counts statuses and checks every answer."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.workloads import Workload

_SCRIPT = """
wrk.method = "POST"
local file = io.open({body}, "rb"); wrk.body = file:read("*a"); file:close()
wrk.headers["content-type"] = {content_type}
local threads = {{}}
function setup(thread) table.insert(threads, thread) end
{check}
function done(summary, latency, requests)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + (thread:get("wrong") or 0) end
  local e = summary.errors
  io.write(string.format(
    '\\nJSON {{"requests": %d, "microseconds": %d, "p50": %.1f, "p99": %.1f, ' ..
    '"refused": %d, "broken": %d, "wrong": %d}}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.status, e.connect + e.read + e.write + e.timeout, wrong))
end
"""
_CHECK = """
wrong = 0
local file = io.open({expected}, "rb"); local expected = file:read("*a"); file:close()
function response(status, headers, body)
  if status ~= 200 or not ({test}) then wrong = wrong + 1 end
end
"""


@dataclass(frozen=True)
class Load:
    """What came of a load. Latencies are in milliseconds; ``lost`` counts requests without a 200."""

    rate: float
    p50: float
    p99: float
    lost: int
    wrong: int


def require() -> None:
    """End with a sentence where wrk is not installed."""
    if shutil.which("wrk") is None:
        raise SystemExit("the benchmark makes its load with wrk, which is not installed: apt-get install wrk")


def load(url: str, workload: Workload, *, connections: int, seconds: int, expected: bytes | None = None) -> Load:
    """Send the workload's request over so many connections for so long.

    With ``expected``, each answer is held against it; JSON up to the sixth digit of its numbers, since a batch of
    another size may round otherwise. That costs wrk, and so the rate, a little: it is for a run of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder, "body")
        body.write_bytes(workload.body)
        check = "" if expected is None else _check(Path(folder, "expected"), expected)
        script = Path(folder, "load.lua")
        script.write_text(
            _SCRIPT.format(body=json.dumps(str(body)), content_type=json.dumps(workload.content_type), check=check)
        )
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
        done = subprocess.run([*command, f"{url}{workload.path}"], capture_output=True, text=True, check=True)
    found = re.search(r"^JSON (.*)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout + done.stderr
    told = json.loads(found.group(1))
    return Load(
        rate=(told["requests"] - told["refused"]) / told["microseconds"] * 1e6,
        p50=told["p50"] / 1000,
        p99=told["p99"] / 1000,
        lost=told["refused"] + told["broken"],
        wrong=told["wrong"],
    )


def _check(file: Path, expected: bytes) -> str:
    loose = expected.startswith(b"{")
    file.write_bytes(pattern(expected.decode()).encode() if loose else expected)
    test = "string.match(body, expected)" if loose else "body == expected"
    return _CHECK.format(expected=json.dumps(str(file)), test=test)


def pattern(expected: str) -> str:
    """Return the Lua pattern of an answer, its numbers cut after five decimals."""
    pieces = re.split(r"(\d\.\d{5})\d*(?:e-?\d+)?", expected)
    escaped = [re.sub(r"([^A-Za-z0-9\s])", r"%\1", piece) for piece in pieces]
    ends = [piece + "[%de%-]*" if index % 2 else piece for index, piece in enumerate(escaped)]
    return f"^{''.join(ends)}$"
