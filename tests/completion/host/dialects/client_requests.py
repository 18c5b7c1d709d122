"""The requests of existing clients, byte for byte as their own source builds them, and how they read the replies.

In a body, @NAME@ stands for a text as a JSON string writes it. `PARTS` says what the names are. Where a client's
language writes the fields in no certain order (Lua, Vim script), they have the order of its source.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

QWEN_STOPS = '["<|endoftext|>","<|fim_prefix|>","<|fim_middle|>","<|fim_suffix|>"]'
CONTINUE_STOPS = (
    '["<|endoftext|>","<|fim_prefix|>","<|fim_middle|>","<|fim_suffix|>","<|fim_pad|>","<|repo_name|>","<|file_sep|>",'
    '"<|im_start|>","<|im_end|>","\\n\\n","\\r\\n\\r\\n","/src/","#- coding: utf-8","```"]'
)
ZED_OLLAMA_STOPS = (
    '["<|endoftext|>","<|file_separator|>","<|fim_pad|>","<|fim_prefix|>","<|fim_middle|>","<|fim_suffix|>",'
    '"<fim_prefix>","<fim_middle>","<fim_suffix>","<PRE>","<SUF>","<MID>","[PREFIX]","[SUFFIX]"]'
)
MINUET_COMMENT = "# language: python\n# indentation: use 4 spaces for a tab\n"
TWINNY_HEADER = "\n''' Language: Python (python) '''\n''' File uri: file:///home/ada/shop.py (python) '''\n"


def line_parts(prefix: str) -> tuple[str, str]:
    """Return the lines before the cursor's line, as llama.cpp's plugins join them, and that line up to the cursor."""
    lines, _, line = prefix.rpartition("\n")
    return lines + "\n", line


def vim_parts(prefix: str, suffix: str) -> tuple[str, str, str]:
    """Return llama.vim's `input_prefix`, `prompt` and `input_suffix`: a line of blanks counts as empty."""
    lines, line = line_parts(prefix)
    rest, _, below = suffix.partition("\n")
    if not (line + rest).strip():
        line = rest = ""
    return lines, line, f"{rest}\n{below}\n"


def vscode_parts(prefix: str, suffix: str) -> tuple[str, str, str]:
    """Return llama.vscode's `inputPrefix`, `prompt` and `inputSuffix`: blanks before the cursor are left out."""
    lines, line = line_parts(prefix)
    rest, _, below = suffix.partition("\n")
    return lines, line if line.strip() else "", f"{rest}\n{below}\n"


def minuet_parts(prefix: str, suffix: str) -> tuple[str, str]:
    """Return minuet's texts before and after the cursor, which have a line break even in the first and last line."""
    return (prefix if "\n" in prefix else "\n" + prefix), (suffix if "\n" in suffix else suffix + "\n")


@dataclass(frozen=True, slots=True)
class Replay:
    """A client's request.

    Attributes:
        client: Name of the client, and of the setting that makes this request.
        source: Repository, revision and file that build the request.
        path: Path of the request.
        body: Body of the request, with placeholders.
        read: Returns the text that the client takes from the bytes of a reply.
        document: Returns the texts before and after the cursor in the request, and by name those that its body has.
        same: The other fields of the request to `/v1/complete` that must give the same text.
        stops: Stop strings of the request.
        timed: Whether the request bounds the time of a text with several lines.
        at_line_end: Whether the client requests only at the end of a line.
    """

    client: str
    source: str
    path: str
    body: str
    read: Callable[[bytes], Any]
    document: Callable[[str, str], tuple[str, str, dict[str, str]]]
    same: dict[str, Any] = field(default_factory=dict)
    stops: tuple[str, ...] = ()
    timed: bool = False
    at_line_end: bool = False

    def request(self, prefix: str, suffix: str) -> bytes:
        """Return the body of the request at a cursor."""
        before, after, named = self.document(prefix, suffix)
        text = self.body
        for name, value in {"P": before, "S": after, **named}.items():
            text = text.replace(f"@{name}@", json.dumps(value, ensure_ascii=False)[1:-1])
        return text.encode()

    def own_request(self, prefix: str, suffix: str) -> dict[str, Any]:
        """Return the request to `/v1/complete` at the same cursor."""
        before, after, _ = self.document(prefix, suffix)
        return {"prefix": before, "suffix": after, **self.same}


def as_it_is(prefix, suffix):
    return prefix, suffix, {}


def of_llama_vim(prefix, suffix):
    lines, line, after = vim_parts(prefix, suffix)
    return lines + line, after, {"LINES": lines, "LINE": line}


def of_llama_vscode(prefix, suffix):
    lines, line, after = vscode_parts(prefix, suffix)
    return lines + line, after, {"LINES": lines, "LINE": line}


def of_minuet(prefix, suffix):
    return *minuet_parts(prefix, suffix), {}


def of_minuets_default(prefix, suffix):
    before, after = minuet_parts(prefix, suffix)
    return MINUET_COMMENT + before, after, {}


def of_continue(prefix, suffix):
    return "\n" + prefix, suffix or "\n", {}


def of_twinny(prefix, suffix):
    return "\n" + TWINNY_HEADER + prefix, " " + suffix, {"DOCUMENT": TWINNY_HEADER + prefix, "AFTER": suffix}


def without_suffix(prefix, _suffix):
    return prefix, "", {}


def without_trailing_blanks(prefix, _suffix):
    return prefix.rstrip(" \t"), "", {}


def data_of(reply: bytes) -> list[Any]:
    """Return the messages of a stream of server-sent events."""
    lines = [line.removeprefix("data: ") for line in reply.decode().splitlines() if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def content(reply):
    return json.loads(reply)["content"]


def contents(reply):
    return [each["content"] for each in json.loads(reply)]


def streamed_content(reply):
    return "".join(chunk["content"] for chunk in data_of(reply))


def choice(reply):
    return json.loads(reply)["choices"][0]["text"]


def streamed_choice(reply):
    return "".join(chunk["choices"][0]["text"] for chunk in data_of(reply))


def message(reply):
    return json.loads(reply)["choices"][0]["message"]["content"]


def streamed_delta(reply):
    return "".join(chunk["choices"][0]["delta"]["content"] for chunk in data_of(reply))


def response(reply):
    (line,) = reply.splitlines()
    return json.loads(line)["response"]


def streamed_response(reply):
    return "".join(json.loads(line)["response"] for line in reply.splitlines())


def warm(temperature, top_p=1.0):
    return {"sampling": {"temperature": temperature, "top_p": top_p}}


MARKED = "<|fim_prefix|>@P@<|fim_suffix|>@S@<|fim_middle|>"
RESPONSE_FIELDS = (
    '["content", "timings/prompt_n", "timings/prompt_ms", "timings/prompt_per_token_ms", "timings/prompt_per_second", '
    '"timings/predicted_n", "timings/predicted_ms", "timings/predicted_per_token_ms", "timings/predicted_per_second", '
    '"truncated", "tokens_cached"]'
)
LLAMA_VIM = "ggml-org/llama.vim@a1c8e6e autoload/llama.vim"
LLAMA_VSCODE = "ggml-org/llama.vscode@3938fb3 src/llama-server.ts (0.0.63)"
MINUET = "milanglacier/minuet-ai.nvim@479487c lua/minuet/backends/openai_base.lua"
CMP_AI = "tzachar/cmp-ai@996c765 lua/cmp_ai/backends/"
CURSORTAB = "cursortab/cursortab.nvim@b9f9b0a server/provider/"
TWINNY = "twinnydotdev/twinny@193d14c src/extension/provider-options.ts (3.23.31)"
LLM_LS = "huggingface/llm-ls@1c52b94 crates/llm-ls/src/backend.rs"
ZED = "zed-industries/zed@09512d2 crates/edit_prediction/src/fim.rs"

REPLAYS = (
    Replay(
        "llama.vim",
        LLAMA_VIM,
        "/infill",
        '{"id_slot": 0, "input_prefix": "@LINES@", "input_suffix": "@S@", "input_extra": [], "prompt": "@LINE@", '
        '"n_predict": 128, "stop": [], "n_indent": 4, "top_k": 40, "top_p": 0.9, '
        '"samplers": ["top_k", "top_p", "infill"], "stream": false, "cache_prompt": true, "t_max_prompt_ms": 500, '
        f'"t_max_predict_ms": 250, "response_fields": {RESPONSE_FIELDS}, "model": ""}}',
        content,
        of_llama_vim,
        timed=True,
    ),
    Replay(
        "llama.vscode",
        LLAMA_VSCODE,
        "/infill",
        '{"id_slot":0,"input_prefix":"@LINES@","input_suffix":"@S@","input_extra":[],"prompt":"@LINE@","n_predict":128,'
        '"n_cmpl":3,"top_k":40,"top_p":0.99,"stream":false,"samplers":["top_k","top_p","infill"],"cache_prompt":true,'
        '"n_indent":4,"t_max_prompt_ms":500,"t_max_predict_ms":500}',
        contents,
        of_llama_vscode,
        same={"suggestions": 3},
        timed=True,
    ),
    Replay(
        "minuet-ai.nvim, llama.cpp",
        MINUET,
        "/v1/completions",
        f'{{"model":"PLACEHOLDER","stream":true,"max_tokens":56,"top_p":0.9,"prompt":"{MARKED}"}}',
        streamed_choice,
        of_minuet,
        same={"max_tokens": 56},
    ),
    Replay(
        "minuet-ai.nvim, Ollama",
        MINUET,
        "/v1/completions",
        '{"model":"qwen2.5-coder:7b","stream":true,"max_tokens":56,"top_p":0.9,"prompt":"@P@","suffix":"@S@"}',
        streamed_choice,
        of_minuets_default,
        same={"max_tokens": 56},
    ),
    Replay(
        "minuet-ai.nvim, DeepSeek",
        MINUET,
        "/beta/completions",
        '{"model":"deepseek-v4-flash","stream":true,"max_tokens":256,"top_p":0.9,"prompt":"@P@","suffix":"@S@"}',
        streamed_choice,
        of_minuets_default,
        same={"max_tokens": 256},
    ),
    Replay(
        "minuet-ai.nvim, Codestral",
        MINUET,
        "/v1/fim/completions",
        '{"model":"codestral-latest","stream":true,"max_tokens":256,"stop":["\\n\\n"],"prompt":"@P@","suffix":"@S@"}',
        streamed_delta,
        of_minuets_default,
        same={"max_tokens": 256},
        stops=("\n\n",),
    ),
    Replay(
        "cmp-ai, Ollama",
        CMP_AI + "ollama.lua",
        "/api/generate",
        '{"model": "codellama:7b-code", "prompt": "<PRE> @P@ <SUF>@S@ <MID>", "stream": false, '
        '"options": {"temperature": 0.2}}',
        response,
        as_it_is,
        same=warm(0.2),
    ),
    Replay(
        "cmp-ai, Codestral",
        CMP_AI + "codestral.lua",
        "/v1/fim/completions",
        '{"prompt": "@P@", "suffix": "", "model": "codestral-latest", "temperature": 0.1, "n": 1, "max_tokens": 100}',
        message,
        without_suffix,
        same={"max_tokens": 100, **warm(0.1)},
    ),
    Replay(
        "cursortab.nvim, fim",
        CURSORTAB + "fim/fim.go",
        "/v1/completions",
        '{"model":"qwen2.5-coder","prompt":"<|repo_name|>shop\\n<|file_sep|>cart.py\\nCART = []\\n\\nTAX = 0.19\\n'
        f'<|file_sep|>shop.py\\n{MARKED}","temperature":0,"max_tokens":128,"top_k":50,'
        '"stop":["<|fim_prefix|>","<|fim_suffix|>","<|fim_middle|>","<|file_sep|>"],"n":1,"echo":false,"stream":false}\n',
        choice,
        as_it_is,
        same={
            "path": "shop.py",
            "repository": "shop",
            "language": "python",
            "context": [{"path": "cart.py", "text": "CART = []\n\nTAX = 0.19"}],
        },
    ),
    Replay(
        "cursortab.nvim, inline",
        CURSORTAB + "inline/inline.go",
        "/v1/completions",
        '{"model":"","prompt":"@P@","temperature":0,"max_tokens":64,"top_k":50,"stop":["\\n"],"n":1,"echo":false,'
        '"stream":false}\n',
        choice,
        without_trailing_blanks,
        same={"max_tokens": 64, "layout": "prefix_only"},
        stops=("\n",),
        at_line_end=True,
    ),
    Replay(
        "Continue, llama.cpp",
        "continuedev/continue@0c38ecf core/llm/llms/LlamaCpp.ts",
        "/completion",
        f'{{"prompt":"{MARKED}","stream":true,"n_predict":4096,"stop":{CONTINUE_STOPS},"temperature":0.01}}',
        streamed_content,
        of_continue,
        same=warm(0.01),
        stops=("\n\n", "/src/", "```"),
    ),
    Replay(
        "Continue, Ollama",
        "continuedev/continue@0108be5 core/llm/llms/Ollama.ts",
        "/api/generate",
        '{"model":"qwen2.5-coder:0.5b","prompt":"@P@","suffix":"@S@","options":{"temperature":0.01,"num_predict":4096,'
        f'"stop":{CONTINUE_STOPS},"num_ctx":32768}},"keep_alive":1800,"stream":true}}',
        streamed_response,
        of_continue,
        same=warm(0.01),
        stops=("\n\n", "/src/", "```"),
    ),
    Replay(
        "Continue, DeepSeek",
        "continuedev/continue@09fc1fa core/llm/llms/Deepseek.ts",
        "/beta/completions",
        '{"model":"deepseek-coder","prompt":"@P@","suffix":"@S@","max_tokens":4096,"temperature":0.01,'
        f'"stop":{CONTINUE_STOPS},"stream":true}}',
        streamed_choice,
        of_continue,
        same={"max_tokens": 4096, **warm(0.01)},
        stops=("\n\n", "/src/", "```"),
    ),
    Replay(
        "Continue, Mistral",
        "continuedev/continue@0069b94 core/llm/llms/OpenAI.ts",
        "/v1/fim/completions",
        '{"model":"codestral-latest","prompt":"@P@","suffix":"@S@","max_tokens":4096,"temperature":0.01,'
        f'"stop":{CONTINUE_STOPS},"stream":true}}',
        streamed_delta,
        of_continue,
        same={"max_tokens": 4096, **warm(0.01)},
        stops=("\n\n", "/src/", "```"),
    ),
    Replay(
        "Continue, LM Studio",
        "continuedev/continue@0069b94 core/llm/llms/OpenAI.ts",
        "/v1/completions",
        '{"model":"qwen2.5-coder","max_tokens":4096,"temperature":0.01,"stream":true,'
        f'"stop":{CONTINUE_STOPS},"prompt":"{MARKED}"}}',
        streamed_choice,
        of_continue,
        same={"max_tokens": 4096, **warm(0.01)},
        stops=("\n\n", "/src/", "```"),
    ),
    Replay(
        "twinny, Ollama",
        TWINNY,
        "/api/generate",
        '{"model":"qwen2.5-coder:0.5b","prompt":"<PRE> \\n@DOCUMENT@ <SUF> @AFTER@ <MID>","stream":true,'
        '"keep_alive":"5m","options":{"temperature":0.2,"num_predict":512}}',
        streamed_response,
        of_twinny,
        same=warm(0.2),
    ),
    Replay(
        "twinny, LM Studio",
        TWINNY,
        "/v1/completions",
        f'{{"model":"codeqwen","prompt":"{MARKED}","stream":true,"temperature":0.2,"max_tokens":512}}',
        streamed_choice,
        as_it_is,
        same={"max_tokens": 512, **warm(0.2)},
    ),
    Replay(
        "llm.nvim, Ollama",
        LLM_LS,
        "/api/generate",
        '{"model":"qwen2.5-coder","options":{"temperature":0.2,"top_p":0.95},'
        '"prompt":"<fim_prefix>@P@<fim_suffix>@S@<fim_middle>","stream":false}',
        response,
        as_it_is,
        same=warm(0.2, 0.95),
    ),
    Replay(
        "llm.nvim, OpenAI",
        LLM_LS,
        "/v1/completions",
        '{"model":"qwen2.5-coder","prompt":"<fim_prefix>@P@<fim_suffix>@S@<fim_middle>","stream":false,'
        '"temperature":0.2,"top_p":0.95}',
        choice,
        as_it_is,
        same=warm(0.2, 0.95),
    ),
    Replay(
        "Zed, OpenAI",
        ZED,
        "/v1/completions",
        f'{{"model":"draftline","prompt":"{MARKED}","max_tokens":64,"stop":{QWEN_STOPS}}}',
        choice,
        as_it_is,
        same={"max_tokens": 64},
    ),
    Replay(
        "Zed, Ollama",
        "zed-industries/zed@fd988f9 crates/edit_prediction/src/ollama.rs",
        "/api/generate",
        f'{{"model":"qwen2.5-coder:3b","prompt":"{MARKED}","raw":true,"stream":false,'
        f'"options":{{"num_predict":64,"temperature":0.2,"stop":{ZED_OLLAMA_STOPS}}}}}',
        response,
        as_it_is,
        same={"max_tokens": 64, **warm(0.2)},
    ),
    Replay(
        "Zed, Codestral's format",
        ZED,
        "/v1/completions",
        '{"model":"draftline","prompt":"[SUFFIX]@S@[PREFIX]@P@","max_tokens":64,"stop":["[PREFIX]","[SUFFIX]"]}',
        choice,
        as_it_is,
        same={"max_tokens": 64},
    ),
    Replay(
        "Tabby",
        "TabbyML/tabby@309edd1 clients/tabby-agent/src/codeCompletion/buildRequest.ts",
        "/v1/completions",
        '{"language":"python","segments":{"prefix":"@P@","suffix":"@S@","filepath":"shop.py"}}',
        choice,
        as_it_is,
        same={"language": "python", "path": "shop.py"},
    ),
    Replay(
        "DeepSeek's documented request",
        'api-docs.deepseek.com, "Create FIM Completion (Beta)"',
        "/beta/completions",
        '{\n  "model": "deepseek-chat",\n  "prompt": "@P@",\n  "echo": false,\n  "frequency_penalty": 0,\n'
        '  "logprobs": 0,\n  "max_tokens": 1024,\n  "presence_penalty": 0,\n  "stop": null,\n  "stream": false,\n'
        '  "stream_options": null,\n  "suffix": "@S@",\n  "temperature": 1,\n  "top_p": 1\n}',
        choice,
        as_it_is,
        same={"max_tokens": 1024, **warm(1.0)},
    ),
)
