from __future__ import annotations

import zipfile
from pathlib import Path

from wheels import ROOT, wheels


def test_a_wheel_holds_every_module_of_its_sources() -> None:
    for name, source in (("forecastle", ROOT / "src"), ("forecastle_dropin", ROOT / "dropin" / "src")):
        (wheel,) = wheels().glob(f"{name}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            packed = {Path(member) for member in archive.namelist()}
        modules = {path.relative_to(source) for path in source.rglob("*.py")}
        assert modules - packed == set()
