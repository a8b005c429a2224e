"""``python -m mms`` is the command ``mms``."""

from __future__ import annotations

from mms.command import main

main()
