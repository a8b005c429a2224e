from __future__ import annotations

import signal
import sys
from pathlib import Path

from cli.process import SHIPPING, serving, starting

MMS = (str(Path(sys.executable).with_name("mms")), "--port", "0")


def test_several_models_are_served_on_one_port_until_a_signal(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "shipping.py").write_text(SHIPPING)
    arguments = ("--model", "resnet-18=file://models/shipping.py", "vgg16=models/shipping.py")
    with serving(*arguments, folder=tmp_path, command=MMS) as server:
        for name in ("resnet-18", "vgg16"):
            reply = server.post(f"/{name}/predict", b'{"location": "Fair Isle"}')
            assert reply.json()["prediction"]["location"] == "Fair Isle"
        server.signal(signal.SIGTERM)
        assert server.end() == 0


def test_a_missing_archive_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with starting("--models", "resnet-18=resnet-18.zip", folder=tmp_path, command=MMS) as server:
        assert server.end() == 1
        assert server.log.splitlines()[-1].startswith("mms: ")
        assert "resnet-18.zip" in server.log.splitlines()[-1]
        assert "Traceback" not in server.log
