"""The requests of the drafting benchmark: three suites of open data, cut as a user's cursor would cut them."""

from __future__ import annotations

import difflib
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.data import read_records
from completion.request import (
    CacheMode,
    CompletionRequest,
    ContextFile,
    GrammarMode,
    Mode,
    Sampling,
    WorkspaceFile,
    WorkspaceUpdate,
)

SHARES = {"humaneval": 0.35, "release": 0.4, "repository": 0.25}
"""Of all records, by suite."""

SAMPLED = Sampling(temperature=0.5)
LONGEST = {Mode.LINE: 48, Mode.BLOCK: 64}

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A request, and what the workspace holds meanwhile."""

    suite: str
    language: str
    request: CompletionRequest
    workspace: WorkspaceUpdate

    def sampled(self, seed: int) -> CompletionRequest:
        """The same request, drawn at random."""
        return replace(self.request, sampling=replace(SAMPLED, seed=seed))


def read_cases(count: int, data: str | None, seed: int = 7) -> list[Case]:
    """About so many cases of all suites, in an order that is random but always the same."""
    makers = {"humaneval": _humaneval, "release": _release, "repository": _repository}
    rng = random.Random(seed)
    cases: list[Case] = []
    for suite, share in SHARES.items():
        made = makers[suite](data)
        cases += rng.sample(made, min(len(made), round(count * share)))
    rng.shuffle(cases)
    return cases


def _case(suite: str, record: Record, prefix: str, suffix: str, mode: Mode, files: dict[str, str]) -> Case:
    key = f"{suite}/{record['id']}"
    request = CompletionRequest(
        prefix=prefix,
        suffix=suffix,
        language=record["language"],
        path=record.get("path", ""),
        document=key,
        workspace=key,
        mode=mode,
        max_tokens=LONGEST[mode],
        cache=CacheMode.EXACT,
        grammar=GrammarMode.OFF,  # drafting alone is measured
        filters=False,
    )
    update = WorkspaceUpdate(key, tuple(WorkspaceFile(path, text) for path, text in files.items()))
    return Case(suite, record["language"], request, update)


def _humaneval(data: str | None) -> list[Case]:
    """A line, several lines, or a span within lines."""
    return [
        _case(
            "humaneval",
            record,
            record["prefix"],
            record["suffix"],
            Mode.LINE if "SingleLine" in record["id"] else Mode.BLOCK,
            {},
        )
        for record in read_records("open_humaneval_infilling_even.jsonl.gz", data)
    ]


def _release(data: str | None) -> list[Case]:
    """The first change of a file to its next release, begun; the workspace holds the older release's files."""
    records = read_records("open_release_replay.jsonl.gz", data)
    packages: dict[str, dict[str, str]] = defaultdict(dict)
    for record in records:
        packages[record["source"]][record["path"]] = record["before"]
    cases = []
    for record in records:
        before, after = record["before"].splitlines(keepends=True), record["after"].splitlines(keepends=True)
        changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        for kind, _, end, start, stop in changes:
            if kind in {"insert", "replace"} and "".join(after[start:stop]).strip():
                prefix, suffix = "".join(after[:start]), "".join(before[end:])
                cases.append(_case("release", record, prefix, suffix, Mode.BLOCK, packages[record["source"]]))
                break
    return cases


def _repository(data: str | None) -> list[Case]:
    """The rest of a line that uses a name from another file; the model sees a part of that, the index all of it."""
    cases = []
    for record in read_records("open_repo_context.jsonl.gz", data):
        files = {file["path"]: file["text"] for file in record["context"]}
        case = _case("repository", record, record["prefix"], record["suffix"], Mode.LINE, files)
        first = record["context"][0]
        context = (ContextFile(first["path"], first["text"][:1500]),)
        cases.append(replace(case, request=replace(case.request, context=context)))
    return cases
