"""A fixture that runs a test of an acceptor with both lexers."""

import pytest

from tests.completion.grammar.acceptors import LEXERS, acceptor_of


@pytest.fixture(params=sorted(LEXERS))
def any_lexer(request):
    return lambda language: acceptor_of(language, request.param)
