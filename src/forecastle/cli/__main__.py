"""``python -m forecastle.cli`` is the command ``forecastle``."""

from __future__ import annotations

from forecastle.cli import main

main()
