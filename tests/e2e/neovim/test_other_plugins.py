"""Plugins of others in the real Neovim, unchanged, with this host: they show what `/v1/complete` gives."""

import json
import time

import pytest

from tests.completion.host.dialects.client_host import TOKEN, ClientHost
from tests.completion.host.dialects.client_requests import minuet_parts, vim_parts
from tests.completion.host.dialects.test_replays import cursors
from tests.e2e.neovim.plugins import plugin_folder
from tests.e2e.sample_documents import MULTIPLY

pytestmark = [pytest.mark.clients, pytest.mark.real_model, pytest.mark.timeout(3600)]

REPLY_S = 300.0  # a completion takes long on a busy machine


@pytest.fixture(scope="module")
def client_host(tmp_path_factory):
    host = ClientHost(tmp_path_factory.mktemp("h"))
    yield host
    host.close()


def put_cursor(neovim, prefix, suffix):
    """Show a document, with the cursor between its two parts in insert mode."""
    lines = (prefix + suffix).split("\n")
    neovim.type("<Esc>")
    neovim.wait_for_lua("vim.fn.mode() == 'n'", "normal mode")
    neovim.request("nvim_buf_set_lines", 0, 0, -1, True, lines)
    line = prefix.count("\n") + 1
    column = len(prefix.rpartition("\n")[2].encode())
    length = len(lines[line - 1].encode())
    neovim.request("nvim_win_set_cursor", 0, [line, min(column, max(length - 1, 0))])
    neovim.type("A" if column == length else "i")
    neovim.wait_for_lua("vim.fn.mode() == 'i'", "insert mode")
    assert neovim.lua("return vim.fn.col('.')") == column + 1


LLAMA_VIM = """
vim.g.llama_config = {{
  endpoint_fim = "{url}/infill", api_key = "{token}", auto_fim = false, ring_n_chunks = 0, show_info = 0,
  keymap_fim_trigger = "<C-F>",
}}
vim.opt.runtimepath:prepend("{folder}")
function hint()
  local lines, space = {{}}, vim.api.nvim_create_namespace("vt_fim")
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {{ details = true }})) do
    if mark[4].virt_text then table.insert(lines, 1, mark[4].virt_text[1][1]) end
    for _, line in ipairs(mark[4].virt_lines or {{}}) do table.insert(lines, line[1][1]) end
  end
  return table.concat(lines, "\\n")
end
"""


NO_REQUEST = "vim.iter(vim.api.nvim_list_chans()):all(function(channel) return channel.stream ~= 'job' end)"


def shown_by_llama_vim(text, prefix, suffix):
    """Return how llama.vim shows a reply: without empty last lines; on a line of blanks, without these blanks."""
    line = prefix.rpartition("\n")[2]
    rest = suffix.partition("\n")[0]
    shown = text.rstrip("\n").split("\n")
    if not (line + rest).strip():
        blanks = len(shown[0]) - len(shown[0].lstrip())
        shown[0], rest = shown[0][min(blanks, len(line + rest)) :], ""
    return "\n".join(shown) + rest


def test_llama_vim_shows_what_v1_complete_gives(client_host, open_neovim, tmp_path):
    lua = LLAMA_VIM.format(url=client_host.url, token=TOKEN, folder=plugin_folder("llama.vim"))
    neovim = open_neovim(lua, tmp_path / "shop.py")
    neovim.command("call llama#init()")
    compared = 0
    for prefix, suffix in cursors():
        neovim.lua("vim.fn.timer_stopall()")  # of the request ahead that llama.vim makes when it has shown a hint
        neovim.wait_for_lua(NO_REQUEST, "end of the last request", REPLY_S)
        lines, line, after = vim_parts(prefix, suffix)
        expected = client_host.text(lines + line, after)
        put_cursor(neovim, prefix, suffix)
        neovim.lua("vim.g.cache_data = vim.empty_dict()")
        neovim.type("<C-f>")
        neovim.wait_for_lua("next(vim.g.cache_data) ~= nil", "reply of the host", REPLY_S)
        text = json.loads(neovim.lua("return select(2, next(vim.g.cache_data))"))["content"]
        # llama.vim bounds the time of its first request to 250 ms, after which a text with a whole line ends.
        assert text == expected or (expected.startswith(text) and "\n" in text)
        if text.strip():
            neovim.wait_for_lua("hint() ~= ''", "hint")
            assert neovim.lua("return hint()") == shown_by_llama_vim(text, prefix, suffix)
            compared += 1
    assert compared >= 20


MINUET = """
vim.opt.runtimepath:prepend("{folder}")
require("minuet").setup {{
  provider = "{provider}", n_completions = 1, context_window = 100000, throttle = 0, debounce = 0,
  request_timeout = 300,
  provider_options = {{ {provider} = {{
    api_key = function() return "{token}" end, name = "draftline", end_point = "{url}{path}", model = "any",
    optional = {{ max_tokens = 56, top_p = 0.9 }},
    {template}
  }} }},
}}
"""
MARKED = """
template = {
  prompt = function(before, after)
    return "<|fim_prefix|>" .. before .. "<|fim_suffix|>" .. after .. "<|fim_middle|>"
  end,
  suffix = false,
},
"""
AS_IT_IS = "template = { prompt = function(before) return before end, suffix = function(_, after) return after end },"


@pytest.mark.parametrize(
    ("provider", "path", "template"),
    [
        ("openai_fim_compatible", "/v1/completions", MARKED),
        ("openai_fim_compatible", "/beta/completions", AS_IT_IS),
        ("codestral", "/v1/fim/completions", AS_IT_IS),
    ],
)
def test_minuet_inserts_what_v1_complete_gives(client_host, open_neovim, tmp_path, provider, path, template):
    folder = plugin_folder("minuet-ai.nvim")
    lua = MINUET.format(
        url=client_host.url, token=TOKEN, folder=folder, provider=provider, path=path, template=template
    )
    neovim = open_neovim(lua, tmp_path / "shop.py")
    compared = 0
    for prefix, suffix in cursors():
        before, after = minuet_parts(prefix, suffix)
        expected = client_host.text(before, after, max_tokens=56)
        if not expected.strip():
            continue
        put_cursor(neovim, prefix, suffix)
        neovim.lua("require('minuet.virtualtext').action.next()")
        neovim.wait_for_lua("require('minuet.virtualtext').action.is_visible()", f"suggestion {expected!r}", REPLY_S)
        neovim.lua("require('minuet.virtualtext').action.accept()")
        neovim.wait_for_lua("not require('minuet.virtualtext').action.is_visible()", "accepted suggestion")
        assert "\n".join(neovim.lines()) == prefix + expected + suffix
        compared += 1
    assert compared >= 20


def poll(neovim, expression):
    """Wait in short calls: nvim-cmp acts through typed keys, which Neovim does not read during a call."""
    deadline = time.monotonic() + REPLY_S
    while not neovim.lua(f"return vim.wait(20, function() return ({expression}) and true end, 5)"):
        assert time.monotonic() < deadline, expression


CMP_AIS_FOLDERS = {"cmp": "nvim-cmp", "plenary": "plenary.nvim", "cmp_ai": "cmp-ai"}
CMP_AI = """
for _, folder in ipairs({{ "{cmp}", "{plenary}", "{cmp_ai}" }}) do vim.opt.runtimepath:prepend(folder) end
local cmp = require("cmp")
require("cmp_ai").setup()
require("cmp_ai.config"):setup {{
  provider = "Ollama", max_lines = 1000, notify = false, run_on_every_keystroke = false,
  provider_options = {{ base_url = "{url}/t/{token}/api/generate" }},
}}
cmp.setup {{ completion = {{ autocomplete = false }}, sources = {{ {{ name = "cmp_ai" }} }} }}
function menu_item()
  local entry = cmp.visible() and cmp.get_entries()[1]
  return entry and entry.completion_item
end
"""


def test_cmp_ai_offers_what_v1_complete_gives(client_host, open_neovim, tmp_path):
    folders = {name: plugin_folder(plugin) for name, plugin in CMP_AIS_FOLDERS.items()}
    neovim = open_neovim(CMP_AI.format(url=client_host.url, token=TOKEN, **folders), tmp_path / "shop.py")
    compared = 0
    for prefix, suffix in cursors():
        expected = client_host.text(prefix, suffix, sampling={"temperature": 0.2, "top_p": 1.0})
        if not expected.strip():
            continue
        put_cursor(neovim, prefix, suffix)
        neovim.lua("require('cmp').complete()")
        poll(neovim, "menu_item()")
        label = neovim.lua("return menu_item().label")
        assert label.endswith(expected)
        assert prefix.endswith(label.removesuffix(expected))  # the word before the cursor
        compared += 1
    assert compared >= 20


MENU_ONLY = 'require("draftline").setup({ filetypes = { ["*"] = false }, COMMAND })'
BLINK = """
vim.opt.runtimepath:prepend("{folder}")
require("blink.cmp").setup {{
  fuzzy = {{ implementation = "lua" }},
  completion = {{ documentation = {{ auto_show = true, auto_show_delay_ms = 0 }} }},
  sources = {{
    default = {{ "draftline" }},
    providers = {{ draftline = {{ name = "draftline", module = "draftline.blink", async = true }} }},
  }},
}}
function menu_item() return require("blink.cmp").is_menu_visible() and require("blink.cmp.completion.list").items[1] end
function has_documentation() return require("blink.cmp").is_documentation_visible() end
"""
NVIM_CMP = """
vim.opt.runtimepath:prepend("{folder}")
local cmp = require("cmp")
cmp.register_source("draftline", require("draftline.cmp"))
local mapping = {{ ["<C-y>"] = cmp.mapping.confirm {{ select = true }} }}
cmp.setup {{ sources = {{ {{ name = "draftline" }} }}, mapping = mapping }}
function menu_item()
  local entry = cmp.visible() and cmp.get_entries()[1]
  return entry and entry.completion_item
end
function has_documentation()
  if not cmp.get_selected_entry() then cmp.select_next_item({{ behavior = cmp.SelectBehavior.Select }}) end
  return cmp.visible_docs()
end
"""


MENUS = [("blink.cmp", BLINK, "require('blink.cmp')"), ("nvim-cmp", NVIM_CMP, "require('cmp')")]


@pytest.mark.parametrize(("plugin", "lua", "menu"), MENUS)
def test_a_suggestion_is_an_item_of_a_completion_menu(edit, plugin, lua, menu):
    neovim = edit(MULTIPLY, lua=lua.format(folder=plugin_folder(plugin)) + MENU_ONLY)
    neovim.type("Are")
    poll(neovim, "vim.fn.mode() == 'i' and vim.api.nvim_get_current_line() == '    re'")
    if plugin == "nvim-cmp":
        neovim.lua(f"{menu}.complete()")
    poll(neovim, "menu_item()")
    item = neovim.lua("return menu_item()")
    assert item["label"] == "return a * b"
    assert item["labelDetails"]["description"] == "draftline"
    assert (item["kind"], item["detail"]) == (1, "draftline")
    assert item["documentation"] == {"kind": "markdown", "value": "```python\nreturn a * b\n```"}
    assert not any(neovim.ghosts)
    poll(neovim, "has_documentation()")
    neovim.type("t")
    poll(neovim, "(menu_item() or {}).filterText == 'return a * b'")
    neovim.type("<C-y>")
    poll(neovim, "vim.api.nvim_get_current_line() == '    return a * b'")
    assert neovim.lines() == (MULTIPLY + "return a * b").splitlines()
    poll(neovim, "vim.list_contains(sent, 'workspace/executeCommand')")


@pytest.mark.parametrize(("plugin", "lua", "menu"), MENUS)
def test_the_menu_of_a_plugin_hides_the_suggestion_until_it_closes(serve, plugin, lua, menu):
    neovim = serve({"x": [{"text": "y + z"}]}, options=lua.format(folder=plugin_folder(plugin)))
    neovim.type("ix")
    neovim.wait_for_ghost(lambda ghost: ghost == "y + z")
    neovim.lua(f"{menu}.{'show' if plugin == 'blink.cmp' else 'complete'}()")
    poll(neovim, "menu_item()")
    neovim.wait_for_no_ghost()
    assert neovim.lua("return vim.fn.maparg('<Tab>', 'i', false, true).desc") != "draftline"
    neovim.lua(f"{menu}.{'hide' if plugin == 'blink.cmp' else 'close'}()")
    neovim.wait_for_ghost(lambda ghost: ghost == "y + z")
