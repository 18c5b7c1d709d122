"""Every test of an acceptor can run with both lexers."""

import pytest

from tests.completion.grammar.acceptors import LEXERS, acceptor_of


@pytest.fixture(params=sorted(LEXERS))
def any_lexer(request):
    return lambda language: acceptor_of(language, request.param)
