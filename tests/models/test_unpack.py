from __future__ import annotations

import os
import random
import stat
import tarfile
import threading
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact, SourceNotFound, StartError
from forecastle.models.unpack import Limits, unpack
from models.builders import MMS, make_tar, make_zip, make_zip_link, make_zip_of_mode, tree


def refused(archive: Path, says: str, limits: Limits | None = None) -> None:
    """The archive is refused with these words, and nothing of it stays, inside the cache or outside."""
    folder = archive.parent
    cache = folder / "cache"
    before = {path for path in folder.rglob("*") if cache not in path.parents and path != cache}
    with pytest.raises(BadArtifact, match=says) as caught:
        unpack(archive, cache, limits=limits)
    assert archive.name in caught.value.message
    assert {path for path in folder.rglob("*") if cache not in path.parents and path != cache} == before
    assert list((cache / "unpacked").iterdir()) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_is_unpacked(tmp_path: Path, method: int) -> None:
    files = MMS | {"sub/deep/er": b"x" * 100_000, "empty": b""}
    assert tree(unpack(make_zip(tmp_path / "a.zip", files, method=method), tmp_path / "cache")) == files


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_unpacked(tmp_path: Path, mode: str) -> None:
    files = {"./net.onnx": b"x" * 100_000, "code/inference.py": b"pass"}
    found = tree(unpack(make_tar(tmp_path / "a.tar.gz", files, mode=mode), tmp_path / "cache"))
    assert found == {"net.onnx": b"x" * 100_000, "code/inference.py": b"pass"}


def test_files_and_folders_get_fresh_permissions(tmp_path: Path) -> None:
    archive = make_zip_of_mode(tmp_path / "a.zip", "a", stat.S_IFREG | stat.S_ISUID | 0o777, b"x")
    assert not stat.S_IMODE((unpack(archive, tmp_path / "cache") / "a").stat().st_mode) & 0o7111


def test_a_second_unpacking_uses_the_first(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", MMS)
    first = unpack(archive, tmp_path / "cache")
    inode = (first / "synset.txt").stat().st_ino
    moved = archive.rename(tmp_path / "b.model")
    assert unpack(moved, tmp_path / "cache") == first
    assert (first / "synset.txt").stat().st_ino == inode


def test_another_content_gets_another_folder(tmp_path: Path) -> None:
    first = unpack(make_zip(tmp_path / "a.zip", {"a": b"1"}), tmp_path / "cache")
    second = unpack(make_zip(tmp_path / "a.zip", {"a": b"2"}), tmp_path / "cache")
    assert (tree(first), tree(second)) == ({"a": b"1"}, {"a": b"2"})


def test_a_folder_left_half_unpacked_never_counts(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", MMS)
    left = tmp_path / "cache" / "unpacked" / ".partial-killed"
    (left / "content").mkdir(parents=True)
    (left / "content" / "net-symbol.json").write_bytes(b"")
    assert tree(unpack(archive, tmp_path / "cache")) == MMS
    assert left.exists(), "it may belong to a process that is still at work"
    os.utime(left, (0, 0))
    unpack(make_zip(tmp_path / "b.zip", {"b": b""}), tmp_path / "cache")
    assert not left.exists()


def test_many_may_unpack_the_same_archive_at_once(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", MMS)
    barrier = threading.Barrier(8)
    found: list[dict[str, bytes]] = []

    def work() -> None:
        barrier.wait()
        found.append(tree(unpack(archive, tmp_path / "cache")))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [MMS] * 8
    assert len(list((tmp_path / "cache" / "unpacked").iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("../../escaped", r"has \.\. in its name"),
        ("a/../../../escaped", r"has \.\. in its name"),
        ("/tmp/escaped", "has an absolute name"),
        ("C:/escaped", "has an absolute name"),
        ("..\\..\\escaped", "has a backslash in its name"),
    ],
)
def test_a_member_that_would_land_elsewhere_is_refused_by_name(tmp_path: Path, name: str, fault: str) -> None:
    files = {"fine": b"x", name: b"evil"}
    refused(make_zip(tmp_path / "slip.zip", files), f"its member .*escaped' {fault}")
    refused(make_tar(tmp_path / "slip.tar.gz", files), f"its member .*escaped' {fault}")


def test_a_name_with_a_zero_byte_is_refused(tmp_path: Path) -> None:
    # ZipInfo cuts a name at its zero byte, so one is put in where the finished archive has a name of the same length.
    archive = make_zip(tmp_path / "a.zip", {"net.onnx_.py": b""})
    archive.write_bytes(archive.read_bytes().replace(b"net.onnx_.py", b"net.onnx\x00.py"))
    refused(archive, "has a name with unprintable characters")


def test_a_link_in_a_zip_is_refused_by_name(tmp_path: Path) -> None:
    refused(make_zip_link(tmp_path / "a.zip", "link", "/etc/passwd"), "its member 'link' is a link or a special file")


def test_a_device_in_a_zip_is_refused(tmp_path: Path) -> None:
    refused(make_zip_of_mode(tmp_path / "a.zip", "dev", stat.S_IFCHR | 0o666, b""), "'dev' is a link or a special file")


@pytest.mark.parametrize(
    "type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_a_link_or_device_in_a_tar_is_refused_by_name(tmp_path: Path, type_: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("fine"))
        info = tarfile.TarInfo("odd")
        info.type = type_
        info.linkname = "/etc/passwd"
        archive.addfile(info)
    refused(tmp_path / "a.tar", "its member 'odd' is a link or a special file")


def test_writing_through_a_link_of_the_archive_is_impossible(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link = tarfile.TarInfo("dir")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("dir/file"))
    refused(tmp_path / "a.tar", "'dir' is a link")
    assert list(outside.iterdir()) == []


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"secret": b"x"}, method=zipfile.ZIP_STORED)
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    refused(archive, "its member 'secret' is encrypted")


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile warns while the archive is made
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("a/b", b"1")
            archive.writestr("a/./b", b"2")
    refused(tmp_path / "a.zip", "it holds 'a/b' twice")


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("a", "a/"), (".", "x")])
def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    refused(make_zip(tmp_path / "a.zip", dict.fromkeys(names, b"")), "twice")


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    files = {f"f{index}": b"" for index in range(6)}
    refused(make_zip(tmp_path / "a.zip", files), "holds more than 5 members", Limits(members=5))
    refused(make_tar(tmp_path / "a.tar", files), "holds more than 5 members", Limits(members=5))
    assert len(tree(unpack(tmp_path / "a.zip", tmp_path / "cache", limits=Limits(members=6)))) == 6


def test_ten_thousand_members_and_eight_gibibytes_are_the_default_limits() -> None:
    assert Limits() == Limits(members=10_000, size=8 * 1024**3)


def test_a_bomb_is_refused_by_what_it_declares(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "bomb.zip", {f"f{index}": bytes(1 << 20) for index in range(4)})
    assert archive.stat().st_size < 10_000
    refused(archive, f"holds more than {3 << 20} bytes", Limits(size=3 << 20))
    refused(make_tar(tmp_path / "bomb.tgz", {"f": bytes(4 << 20)}), "bytes, the most we unpack", Limits(size=3 << 20))


def test_a_bomb_that_declares_less_than_it_holds_is_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "bomb.zip", {"f": bytes(4 << 20)})
    archive.write_bytes(archive.read_bytes().replace((4 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    refused(archive, "truncated or corrupt", Limits(size=1 << 20))


def test_a_bomb_of_overlapping_members_is_refused(tmp_path: Path) -> None:
    # All entries of the directory at the end point to the one member at the beginning.
    kernel = make_zip(tmp_path / "bomb.zip", {"f0": bytes(1 << 20)}).read_bytes()
    start = kernel.index(b"PK\x01\x02")
    end = kernel.index(b"PK\x05\x06")
    entry = kernel[start:end]
    tail = bytearray(kernel[end:])
    tail[8:12] = (50).to_bytes(2, "little") * 2
    tail[12:16] = (50 * len(entry)).to_bytes(4, "little")
    (tmp_path / "bomb.zip").write_bytes(kernel[:start] + entry * 50 + tail)
    refused(tmp_path / "bomb.zip", "corrupt|twice|holds more than", Limits(size=10 << 20))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_truncated_zip_is_refused_by_name(tmp_path: Path, method: int) -> None:
    whole = make_zip(tmp_path / "whole.zip", MMS | {"w": random.Random(0).randbytes(3000)}, method=method).read_bytes()
    for length in (4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        (tmp_path / "cut.zip").write_bytes(whole[:length])
        refused(tmp_path / "cut.zip", r"cut\.zip is a truncated or corrupt zip archive: .")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_truncated_tar_is_refused_by_name(tmp_path: Path, mode: str) -> None:
    content = random.Random(0).randbytes(3000)
    whole = make_tar(tmp_path / "whole.tar", {"a": content, "b": content}, mode=mode).read_bytes()
    for length in (300, 512, 1024, 4096, 4200, 5000, 7000):
        if length < len(whole):
            (tmp_path / "cut.tar").write_bytes(whole[:length])
            refused(tmp_path / "cut.tar", r"cut\.tar is a truncated or corrupt tar archive: .")


def test_damage_in_a_compressed_tar_is_noticed_at_its_end(tmp_path: Path) -> None:
    data = bytearray(make_tar(tmp_path / "a.tgz", {"a": b"x" * 1000}).read_bytes())
    data[-8] ^= 1  # gzip's checksum
    (tmp_path / "a.tgz").write_bytes(data)
    refused(tmp_path / "a.tgz", "truncated or corrupt tar archive: CRC check failed")


def test_a_compressed_file_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08" + bytes(40))
    refused(tmp_path / "a.gz", "truncated or corrupt tar archive")


def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    pristine = {
        "zip": make_zip(tmp_path / "a.zip", MMS).read_bytes(),
        "stored": make_zip(tmp_path / "b.zip", MMS, method=zipfile.ZIP_STORED).read_bytes(),
        "bzip2": make_zip(tmp_path / "c.zip", MMS, method=zipfile.ZIP_BZIP2).read_bytes(),
        "lzma": make_zip(tmp_path / "d.zip", MMS, method=zipfile.ZIP_LZMA).read_bytes(),
        "tar": make_tar(tmp_path / "a.tar", MMS, mode="w").read_bytes()[:6144],
        "tgz": make_tar(tmp_path / "a.tgz", MMS).read_bytes(),
    }
    rng = random.Random(7)
    for kind, whole in pristine.items():
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(4, len(data))] = rng.randrange(256)
            damaged = tmp_path / f"damaged-{kind}"
            damaged.write_bytes(data)
            with suppress(BadArtifact):
                assert unpack(damaged, tmp_path / "cache", limits=Limits(size=1 << 20)).parent.name == "unpacked"
    assert not list((tmp_path / "cache" / "unpacked").glob(".partial*"))


def test_an_archive_that_changes_meanwhile_does_not_stand_under_the_old_digest(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"a": b"1"}, method=zipfile.ZIP_STORED)

    def overwrite(activity: str, done: int, total: int | None) -> None:
        os.utime(archive, (1, 1))

    with pytest.raises(BadArtifact, match="changed while it was being unpacked"):
        unpack(archive, tmp_path / "cache", progress=overwrite)
    assert list((tmp_path / "cache" / "unpacked").iterdir()) == []


def test_progress_ends_at_most_at_the_size_of_the_archive(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"f{index}": random.Random(index).randbytes(2000) for index in range(5)})
    calls: list[tuple[str, int, int | None]] = []
    unpack(archive, tmp_path / "cache", progress=lambda *call: calls.append(call))
    assert {activity for activity, _, _ in calls} == {"unpacking a.zip"}
    done = [done for _, done, _ in calls]
    size = archive.stat().st_size
    assert done == sorted(done)
    assert 0 < done[0] <= done[-1] <= size
    assert {total for _, _, total in calls} == {size}


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"hello")
    with pytest.raises(BadArtifact, match=r"a\.zip is neither a zip nor a tar archive"):
        unpack(tmp_path / "a.zip", tmp_path / "cache")


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"a\.zip cannot be read: No such file"):
        unpack(tmp_path / "a.zip", tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file in its place")
    archive = make_zip(tmp_path / "a.zip", {"a": b""})
    with pytest.raises(StartError, match=r"cannot write under .*cache"):
        unpack(archive, tmp_path / "cache")
