from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.cluster.environments.requirements import digest, expanded, linked, of_replica
from forecastle.errors import SourceNotFound

LINES = st.lists(st.sampled_from(["numpy<2", "six", "pillow>=11; python_version > '3.9'", "a @ file:///a.whl"]))


def test_a_file_is_what_it_holds_and_what_it_includes_from_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "r.txt").write_text("numpy<2  # as trained\n\n# nothing\n-r inner/more.txt\n-c inner/limits.txt\n")
    (tmp_path / "inner" / "more.txt").write_text("-r deep.txt\nsix \\\n  ==1.16\n")
    (tmp_path / "inner" / "deep.txt").write_text("\ufeffidna\n")
    (tmp_path / "inner" / "limits.txt").write_text("pillow<12\n")
    found = expanded(["x", f"-r {tmp_path / 'r.txt'}"], "m")
    assert [" ".join(line.split()) for line in found] == ["x", "numpy<2", "idna", "six ==1.16", "-c pillow<12"]


@given(LINES, LINES)
def test_two_digests_are_equal_where_what_is_wanted_is(one: list[str], other: list[str]) -> None:
    assert (digest(one, "m") == digest(other, "m")) is (one == other)
    assert digest([*one, "# a comment", ""], "m") == digest(one, "m")


def test_a_digest_changes_with_a_file_that_is_included(tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    file.write_text("six==1.16.0\n")
    before = digest([f"-r {file}"], "m")
    file.write_text("six==1.17.0\n")
    assert digest([f"-r {file}"], "m") != before


def test_a_file_that_is_missing_or_includes_itself_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"m: the requirements .*gone\.txt cannot be read: No such file"):
        expanded([f"-r {tmp_path / 'gone.txt'}"], "m")
    (tmp_path / "r.txt").write_text("-r r.txt\n")
    with pytest.raises(SourceNotFound, match="m: requirement files include one another more than 10 deep"):
        expanded([f"-r {tmp_path / 'r.txt'}"], "m")


def test_a_replica_needs_little_and_a_runtimes_replica_its_extra() -> None:
    assert {name.partition(">")[0] for name in of_replica("script")} == {"msgspec", "pluggy", "werkzeug"}
    assert "xgboost-cpu" in {name.partition(">")[0] for name in of_replica("xgboost")}


def test_our_packages_are_found_where_they_lie() -> None:
    assert {"forecastle", "inference_server"} <= linked().keys()
    assert (linked()["forecastle"] / "errors.py").is_file()
