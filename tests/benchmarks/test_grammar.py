"""The sources and shares of benchmarks.grammar."""

import io
import os
import sys
import tarfile
from collections import Counter

import pytest

from benchmarks.grammar import sampling, sources
from benchmarks.grammar.__main__ import Cuts, _share, measure_cuts, measure_faults
from benchmarks.grammar.faults import CHECKS
from benchmarks.grammar.sources import SourceFile, fetch, valid_sources

SOURCE = b"def add(a, b):\n    return a + b\n\n\n" * 12


def test_without_cuts_or_faults_there_is_no_share():
    assert Cuts().rate is None
    assert _share(Counter(), *CHECKS) is None
    assert _share(Counter({"acceptor": 2, "joined": 1, "": 1}), *CHECKS) == 0.75
    assert _share(Counter({"acceptor": 2, "joined": 1, "": 1}), "acceptor") == 0.5


def test_valid_source_is_not_rejected_and_its_faults_are_counted():
    files = [SourceFile("a.py", "python", SOURCE)]
    assert measure_cuts(files, 10, 3, 1).rate == 0
    assert measure_faults(files, 4, 1).total() > 0


def test_a_folder_without_sources_ends_the_benchmark(tmp_path):
    (tmp_path / "short.py").write_bytes(b"a = 1\n")
    with pytest.raises(SystemExit, match="no source file"):
        valid_sources(tmp_path, 1)


def test_releases_that_are_pinned_no_more_are_not_read(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sources, "PYPI", ("demo==2",))
    monkeypatch.setattr(sources, "NPM", ("@scope/demo@2",))
    monkeypatch.setattr(sources, "_MORE", tmp_path / "packages.txt")
    (tmp_path / "packages.txt").write_text("MIT pypi:more 3\n", encoding="utf-8")
    for release in ("demo==1", "demo==2", "@scope+demo@2", "more==3"):
        folder = tmp_path / "benchmark-sources" / release
        folder.mkdir(parents=True)
        with tarfile.open(folder / f"{release}.tar.gz", "w:gz") as tar:
            member = tarfile.TarInfo("a.py")
            member.size = len(SOURCE)
            tar.addfile(member, io.BytesIO(SOURCE))
    assert [archive.parent.name for archive in fetch()] == ["@scope+demo@2", "demo==2", "more==3"]
    assert len(valid_sources(None, 1)["python"]) == 3


@pytest.mark.parametrize("command", ["no-such-program", sys.executable])
def test_a_release_that_cannot_be_downloaded_is_named_and_leaves_nothing(tmp_path, command):
    folder = tmp_path / "demo==2"
    start = [command, "-c", "open('half', 'w'); raise SystemExit(1)"]
    with pytest.raises(SystemExit, match=r"demo==2 could not be downloaded.*--only"):
        sources._fetch(folder, start, dict(os.environ))
    assert list(tmp_path.iterdir()) == []
    sources._fetch(folder, [sys.executable, "-c", "open('whole', 'w')"], dict(os.environ))
    assert [path.name for path in folder.iterdir()] == ["whole"]


def test_sampling_approaches_the_exact_distribution_with_what_it_learned(monkeypatch):
    monkeypatch.setattr(sampling, "COUNTS", (10, 100))
    exact = sampling.exact_distribution()
    after = sampling.run_samplers(1)
    far = {name: [sampling.total_variation(exact, each) for each in rows.values()] for name, rows in after.items()}
    assert far["local"][0] == far["local"][1] > 0.4
    assert far["asap"][0] > far["asap"][1] < 0.05
    assert far["weighted drawn"][1] < far["local drawn"][1]
