"""``python -m forecastle.replica``: what a launcher starts."""

from __future__ import annotations

import sys

from forecastle.replica.process import main

sys.exit(main())
