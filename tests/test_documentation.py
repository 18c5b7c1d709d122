"""Links between the pages lead somewhere, and pages that messages, comments and pages name exist."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MENTION = re.compile(r"\bdocs/[\w-]+\.(?:md|json)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text)}


def links(page: Path) -> list[tuple[str, str]]:
    """Return the relative links of a page: path and anchor, either may be empty."""
    return LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for path, anchor in links(page):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_each_page_is_linked_from_the_readme():
    linked = {(ROOT / path).resolve() for path, _ in links(ROOT / "README.md")}
    assert set((ROOT / "docs").glob("*.md")) <= linked


def test_named_pages_exist():
    command = ["git", "ls-files", "*.py", "*.md", "*.lua", "*.ts", "*.yaml", "*.txt", "Makefile"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in listed if (ROOT / name).exists()]
    named = {page for text in texts for page in MENTION.findall(text)}
    assert {page for page in named if not (ROOT / page).exists()} <= {
        "docs/api.md",
        "docs/gguf.md",
        "docs/secrets.md",
    }  # of Ollama, of ggml, and of a test


def test_images_of_the_documentation_are_used():
    text = "".join(page.read_text(encoding="utf-8") for page in [*PAGES, *(ROOT / "ide_clients").glob("*/README.md")])
    assert [image.name for image in (ROOT / "docs" / "images").iterdir() if image.name not in text] == []
