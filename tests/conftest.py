"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes depends on what else the machine does, and fails nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
