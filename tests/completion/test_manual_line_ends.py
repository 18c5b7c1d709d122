"""What a manual request gets at the end of a complete line: the line below, and no remark on this one."""

import pytest

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.model.loading import load_model
from completion.request import CompletionRequest
from completion.syntax.table import row_of

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]

PLACES = {
    "python": "values = [3, 1, 2]\nvalues.sort()‸\nprint(values)\n",
    "javascript": "const fs = require('fs');‸\n\nfunction read(path) {\n  return fs.readFileSync(path, 'utf8');\n}\n",
    "typescript": "interface User {\n  id: number;\n  name: string;‸\n}\n",
    "go": 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello")‸\n}\n',
    "java": "class Counter {\n    private int count = 0;‸\n\n    int next() {\n        return ++count;\n    }\n}\n",
    "cpp": "int sum(const std::vector<int>& v) {\n    int total = 0;‸\n    return total;\n}\n",
    "css": "a {\n  color: red;‸\n}\n",
    "shellscript": '#!/bin/bash\nset -e‸\n\ncd "$1"\nmake\n',
}


@pytest.fixture(scope="module")
def engine():
    return Engine(load_model("default"))


@pytest.mark.parametrize("language", PLACES)
def test_the_line_below_is_suggested_and_nothing_that_was_shown_is_taken_back(engine, language):
    before, after = PLACES[language].split("‸")
    request = CompletionRequest(before, after, language, document=language, invoked=True, max_tokens=24)
    *growing, event = engine.complete(request, CancelToken())
    text = event.suggestions[0].text
    assert text.startswith("\n")
    assert text.strip()
    assert not text.lstrip().startswith(tuple(row_of(language).comments))
    assert all(text.startswith(one.suggestions[0].text) for one in growing if one.suggestions and one.whole == 0)


def test_a_line_below_which_nothing_is_missing_gets_alternatives_of_its_own(engine):
    before = "class Dog\n  def initialize(name)\n    @name = name"
    request = CompletionRequest(before, "\n  end\nend\n", "ruby", document="d", invoked=True, suggestions=2)
    event = list(engine.complete(request, CancelToken()))[-1]
    assert event.suggestions
    assert not event.suggestions[0].text.startswith("\n")
