"""Requests of the drafting benchmark: three suites of open data, cut at cursors as in an editor."""

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
"""Share of all records, by suite."""

SAMPLED = Sampling(temperature=0.5)
"""Sampling of the requests that are not greedy."""
LONGEST = {Mode.LINE: 48, Mode.BLOCK: 64}
"""Maximum number of tokens, by mode."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A request and the files of its workspace."""

    suite: str
    language: str
    request: CompletionRequest
    workspace: WorkspaceUpdate

    def sampled(self, seed: int) -> CompletionRequest:
        """Return the same request with random sampling."""
        return replace(self.request, sampling=replace(SAMPLED, seed=seed))


def read_cases(count: int, data: str | None) -> list[Case]:
    """Return about `count` cases of all suites, the same in the same order at every call."""
    makers = {"humaneval": _humaneval, "release": _release, "repository": _repository}
    rng = random.Random(7)
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
        grammar=GrammarMode.OFF,  # only drafting is measured
        filters=False,
    )
    update = WorkspaceUpdate(key, tuple(WorkspaceFile(path, text) for path, text in files.items()))
    return Case(suite, record["language"], request, update)


def _humaneval(data: str | None) -> list[Case]:
    """Return holes of one line, of several lines, and of spans within lines."""
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
    """Return the first change of each file to its next release; the workspace has the files of the older release."""
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
    """Return ends of lines that use a name from another file. The prompt has a part of that file, the index all."""
    cases = []
    for record in read_records("open_repo_context.jsonl.gz", data):
        files = {file["path"]: file["text"] for file in record["context"]}
        case = _case("repository", record, record["prefix"], record["suffix"], Mode.LINE, files)
        context = tuple(ContextFile(file["path"], file["text"][:1500]) for file in record["context"][:1])
        cases.append(replace(case, request=replace(case.request, context=context)))
    return cases
