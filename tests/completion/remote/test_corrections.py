"""A server's token that the constraints reject is replaced by a draw from the tokens that they accept."""

from collections import Counter

from completion.cancellation import CancelToken
from completion.decoding.constraints import Constraints
from completion.model.tokenizer import CodeTokenizer
from completion.remote.decoder import RemoteDecoder
from completion.remote.model_server import Generated
from completion.request import Sampling
from tests.tiny_models import tiny_tokenizer

TOKENIZER = CodeTokenizer(tiny_tokenizer())
[REJECTED], [LIKELY], [RARE] = map(TOKENIZER.encode, ("z", "i", "in"))
FORCED = b"in"


class OneToken:
    """A server whose next token is always the same one."""

    def generate(self, _query, _cancel):
        yield Generated(REJECTED, {REJECTED: -0.1, LIKELY: -1.0, RARE: -1.5}, None)


def corrected(sampling, length):
    constraints = Constraints(TOKENIZER, FORCED)
    decoder = RemoteDecoder(
        OneToken(), [0] * length, constraints, sampling, 8, frozenset(), constraints.start, lambda _cached: None
    )
    return next(decoder.steps(CancelToken())).tokens[0]


def test_greedy_decoding_takes_the_likeliest_allowed_token():
    assert {corrected(Sampling(), length) for length in range(20)} == {LIKELY}


def test_with_a_temperature_the_replacement_is_drawn():
    found = Counter(corrected(Sampling(temperature=1.0, seed=4), length) for length in range(400))
    assert found.keys() == {LIKELY, RARE}
    assert 0.5 < found[LIKELY] / 400 < 0.75  # 0.62 of the allowed mass
    assert corrected(Sampling(temperature=1.0, seed=4), 7) == corrected(Sampling(temperature=1.0, seed=4), 7)
