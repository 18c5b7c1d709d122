"""Malformed and hostile bodies: the host refuses them with a message, and never with status 500."""

import json

import pytest

from completion.edits import MAX_DIAGNOSTICS, MAX_HISTORY_CHARACTERS, MAX_MESSAGE_CHARACTERS
from completion.host.dialects.marked_prompt import marked_request
from completion.request import MAX_NAME_CHARACTERS, MAX_NAMES
from tests.completion.host.paced_engine import PacedEngine

ADDRESSES = {
    "/v1/complete": {"prefix": "one", "max_tokens": 1},
    "/v1/prepare": {"prefix": "one"},
    "/v1/next-edit": {"lines": ["x = 1"], "edits": []},
    "/v1/workspace": {"workspace": "w"},
    "/infill": {"input_prefix": "one", "n_predict": 1},
    "/v1/completions": {"prompt": "one", "max_tokens": 1},
    "/v1/completions#tabby": {"segments": {"prefix": "one"}},
    "/v1/events": {"type": "view"},
    "/completion": {"prompt": "one", "n_predict": 1},
    "/v1/fim/completions": {"prompt": "one", "max_tokens": 1},
    "/api/generate": {"prompt": "one", "stream": False},
    "/api/show": {"model": "any"},
}
MAY_BE_EMPTY = ("/infill", "/api/generate", "/api/show")
NUMBERS = {
    "/v1/complete": ("max_tokens", "max_bytes", "max_lines", "suggestions", "time_budget_ms"),
    "/infill": ("n_predict", "temperature", "top_p", "min_p", "seed", "t_max_predict_ms"),
    "/v1/completions": ("max_tokens", "temperature", "top_p", "seed", "n", "logprobs"),
    "/v1/completions#tabby": ("temperature", "seed"),
    "/completion": ("n_predict", "n_cmpl", "max_tokens", "temperature", "top_p", "min_p", "seed", "t_max_predict_ms"),
    "/v1/fim/completions": ("max_tokens", "temperature", "top_p", "random_seed"),
    "/api/generate": ("options.num_predict", "options.temperature", "options.top_p", "options.min_p", "options.seed"),
}
HUGE = ("1" + "0" * 400, "-1" + "0" * 400, "1" + "0" * 5000, "1e999", "-1e999", "NaN", "Infinity", "1e-400")


def is_refusal(reply):
    return reply.status_code in (400, 422) and len(message_of(reply.json())) > 20


def message_of(body):
    """Return the message of an error in the form of any interface."""
    error = body.get("error", body)
    return error if isinstance(error, str) else error["message"]


def with_field(body, field, value):
    """Return a body with a field, which may be within an object: "options.seed"."""
    outer, _, inner = field.partition(".")
    return body | {outer: {inner: value} if inner else value}


@pytest.mark.parametrize("address", NUMBERS)
async def test_huge_numbers_are_refused_and_no_500(start_host, address):
    client = await start_host(PacedEngine())
    refused = 0
    for field in NUMBERS[address]:
        for number in HUGE:
            text = json.dumps(with_field(ADDRESSES[address], field, "@")).replace('"@"', number)
            reply = await client.post(address, content=text)
            assert is_refusal(reply) or reply.status_code == 200, (field, number, reply.text)
            refused += reply.status_code != 200
    assert refused >= len(HUGE)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_deeply_nested_json_gets_422_and_not_500(start_host, address):
    client = await start_host(PacedEngine())
    for depth in (1_000, 100_000, 600_000):
        nested = "[" * depth + "]" * depth
        objects = '{"a":' * depth
        inside = json.dumps(ADDRESSES[address] | {"unknown": "@"}).replace('"@"', nested)
        for text in (nested, objects, inside):
            assert is_refusal(await client.post(address, content=text)), (depth, text[:40])


@pytest.mark.parametrize("address", ADDRESSES)
async def test_bodies_that_are_not_an_object_of_the_right_form_are_refused(start_host, address):
    client = await start_host(PacedEngine())
    bodies = (b"", b"null", b"[]", b"7", b'"text"', b"\xff\xfe", b'{"prefix": "\\ud800"}', b'{"a": 1, "a"', b"\0")
    for content in bodies:
        reply = await client.post(address, content=content)
        assert is_refusal(reply) or (address in MAY_BE_EMPTY and reply.status_code == 200), (content, reply.text)


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("/infill", "stop"),
        ("/infill", "response_fields"),
        ("/completion", "stop"),
        ("/v1/completions", "stop"),
        ("/v1/fim/completions", "stop"),
        ("/api/generate", "options.stop"),
    ],
)
async def test_lists_that_the_event_loop_iterates_over_have_a_maximum_length(start_host, address, field):
    client = await start_host(PacedEngine())
    assert is_refusal(await client.post(address, json=with_field(ADDRESSES[address], field, ["x"] * 65)))
    assert (await client.post(address, json=with_field(ADDRESSES[address], field, ["x"] * 64))).status_code == 200


async def test_the_edit_history_has_a_maximum_length(start_host):
    client = await start_host(PacedEngine())
    body = ADDRESSES["/v1/complete"] | {"history": "@" * (MAX_HISTORY_CHARACTERS + 1)}
    assert is_refusal(await client.post("/v1/complete", json=body))
    assert (await client.post("/v1/complete", json=body | {"history": body["history"][1:]})).status_code == 200


async def test_diagnostics_have_a_maximum_number_and_length(start_host):
    client = await start_host(PacedEngine())
    told = {"line": 0, "message": "x" * MAX_MESSAGE_CHARACTERS}
    allowed, longer = [told] * MAX_DIAGNOSTICS, told | {"message": told["message"] + "x"}
    for diagnostics, status in ((allowed, 200), ([*allowed, told], 422), ([longer], 422)):
        body = ADDRESSES["/v1/next-edit"] | {"diagnostics": diagnostics}
        assert (await client.post("/v1/next-edit", json=body)).status_code == status


async def test_names_have_a_maximum_number_and_length(start_host):
    client = await start_host(PacedEngine())
    allowed = ["x" * MAX_NAME_CHARACTERS] * MAX_NAMES
    for names, status in ((allowed, 200), ([*allowed, "x"], 422), ([allowed[0] + "x"], 422)):
        assert (
            await client.post("/v1/complete", json=ADDRESSES["/v1/complete"] | {"names": names})
        ).status_code == status


@pytest.mark.parametrize("repeated", ["<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>", " "])
def test_a_prompt_of_many_markers_is_parsed_in_one_pass(repeated):
    """A regular expression with two `.*` takes quadratic time: hours for 200,000 markers."""
    for begin in ("<|fim_prefix|>", "<|fim_prefix|>x", "<|fim_suffix|>", "<|file_sep|>a", "<|repo_name|>", ""):
        for end in ("<|fim_middle|>", "<|fim_prefix|>p<|fim_suffix|>s<|fim_middle|>", ""):
            parts = marked_request(begin + 200_000 * repeated + end)
            assert len(parts.context) <= 1_000
            assert len(parts.repository) <= 1_000
