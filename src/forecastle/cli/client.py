"""``forecastle client``: packages that ask a server, in many languages."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from cyclopts import App

from forecastle.client.generate import FOLDER, checked, generate
from forecastle.errors import SourceNotFound

app = App(name="client", help="Make packages that ask a server.")


@app.command(name="generate")
def generate_(language: str, *, url: str = "http://127.0.0.1:8080", output: Path = FOLDER) -> int:
    """Generate a client's package from what a running server says of itself.

    Args:
        language: One of bash, c, cpp, csharp, dart, go, java, javascript, kotlin, perl, php, python, r, ruby, rust,
            swift and typescript.
        url: The server to describe.
        output: The folder to write; what lies there is written over.
    """
    language = checked(language)
    told(generate(described(url), language, output), language, output)
    return 0


def told(install: str, language: str, folder: Path) -> None:
    """Say where a client lies, and how it is installed."""
    sys.stdout.write(
        f"wrote the {language} client to {folder}\n" + (f"install it with: {install}\n" if install else "")
    )
    sys.stdout.flush()


def described(url: str) -> dict[str, Any]:
    """Fetch a server's Swagger description.

    Raises:
        SourceNotFound: the server cannot be reached, or says something else.
    """
    page = f"{url.rstrip('/')}/api-description"
    try:
        with urllib.request.urlopen(page, timeout=30.0) as reply:  # noqa: S310 -- the user's own server
            found: dict[str, Any] = json.load(reply)["description"]
            return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", None) or error
        raise SourceNotFound(f"{page} cannot be read: {reason}; is a server running there (--url)?") from None
