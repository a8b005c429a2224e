"""inference-server's worked example: packages installed with pip into an environment, served without an argument."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from cli.process import PORTS, serving

DATA = Path(__file__).parent.parent / "data"
FORECAST = {
    "wind": "Southwesterly gale force 8 continuing",
    "sea_state": "Rough or very rough, occasionally moderate in southeast.",
    "weather": "Thundery showers.",
    "visibility": "Good, occasionally poor.",
}


def environment_with(folder: Path, *packages: Path) -> Path:
    """Make an environment that sees this one's packages, install into it with pip, and return its Python."""
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    [site] = environment.glob("lib/python*/site-packages")
    (site / "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    python = environment / "bin" / "python"
    for package in packages:
        source = folder / "sources" / package.name
        shutil.copytree(package, source)  # a build leaves its traces in the source
        options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
        command = [str(python), "-m", "pip", "install", *options, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return python


@pytest.mark.parametrize(
    ("packages", "name"),
    [(["shipping_forecast"], "shipping_forecast"), (["shipping_split/model", "shipping_split/json"], "model")],
    ids=["one package", "split over two"],
)
def test_the_installed_shipping_forecast_answers_unchanged(tmp_path: Path, packages: list[str], name: str) -> None:
    python = environment_with(tmp_path, *(DATA / package for package in packages))
    with serving(folder=tmp_path, command=[str(python), "-m", "forecastle.cli", "serve", *PORTS]) as server:
        reply = server.post("/invocations", b'{"location": "Fair Isle"}')
        assert (reply.status_code, reply.json()) == (200, FORECAST)
        assert reply.headers["content-type"] == "application/json"
        assert server.post(f"/{name}/predict", b'{"location": "Fair Isle"}').json() == {"prediction": FORECAST}


def test_the_shipping_forecast_is_served_by_file_and_by_module_too(tmp_path: Path) -> None:
    source = DATA / "shipping_forecast" / "src" / "shipping_forecast" / "__init__.py"
    shutil.copy(source, tmp_path / "shipping.py")
    shutil.copytree(source.parent, tmp_path / "shipping_forecast")
    with serving("shipping.py", "module=shipping_forecast", folder=tmp_path) as server:
        for name in ("shipping", "module"):
            reply = server.post(f"/{name}/predict", b'{"location": "Fair Isle"}')
            assert reply.json() == {"prediction": FORECAST}
