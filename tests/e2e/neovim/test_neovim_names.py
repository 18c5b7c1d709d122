"""Names that another language server knows, in the real Neovim: which places ask for them, and what is told."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.neovim

# Another server, which knows members; `asked` has the columns of its requests, `told` what draftline gets. A request
# after "slow." waits until `release` runs.
OTHER = """
asked, told, cancelled = {}, {}, 0
local items = { { label = "zebra", kind = 2 }, { label = "zoo()", insertText = "zoo($0)", kind = 3 },
  { label = "a word", kind = 1 }, { label = "for", insertText = "for x in y", kind = 15 } }
local function other(dispatchers)
  return {
    request = function(method, params, callback)
      if method == "initialize" then
        callback(nil, { capabilities = { positionEncoding = "utf-16", textDocumentSync = 1,
          completionProvider = { triggerCharacters = { "." } } } })
      elseif method == "textDocument/completion" then
        table.insert(asked, params.position.character)
        local line = vim.api.nvim_get_current_line()
        local function reply()
          callback(nil, line:match("broken") and { { label = "if", kind = 14 }, items[1] } or { items = items })
        end
        if line:match("slow") then release = reply else reply() end
      else
        callback(nil, vim.NIL)
      end
      return true, #asked
    end,
    notify = function(method)
      if method == "$/cancelRequest" then cancelled = cancelled + 1 end
      if method == "exit" then dispatchers.on_exit(0, 0) end
      return true
    end,
    is_closing = function() return false end,
    terminate = function() end,
  }
end
vim.lsp.config("other", { cmd = other })
vim.lsp.enable("other")
local notify = vim.lsp.client.notify
vim.lsp.client.notify = function(self, method, params)
  if method == "draftline/names" then table.insert(told, params) end
  return notify(self, method, params)
end
"""


@pytest.fixture
def typing(serve):
    """Return a function that types a text in insert mode, with both servers attached."""

    def start(options=""):
        neovim = serve({}, options=OTHER, start=f'require("draftline").setup({{ {options} }})')
        neovim.wait_for_lua("#vim.lsp.get_clients({ bufnr = 0 }) == 2", "both servers")
        return neovim

    return start


def told(neovim) -> list:
    return neovim.lua("return vim.tbl_map(function(one) table.sort(one.names) return one end, told)")


def test_a_member_access_tells_the_names_once_for_all_keys_of_the_name(typing):
    neovim = typing()
    neovim.type("iorder.")
    neovim.wait_for_lua("#told == 1", "names")
    neovim.type("zeb")
    neovim.wait_for_lua("vim.fn.getline(1) == 'order.zeb'", "typed name")
    [one] = told(neovim)
    assert one["names"] == ["zebra", "zoo"]
    assert one["position"] == {"line": 0, "character": 6}
    assert neovim.lua("return asked") == [6]


def test_names_that_come_while_the_name_is_typed_are_told_and_later_ones_are_not(typing):
    neovim = typing()
    neovim.type("islow.")
    neovim.wait_for_lua("release", "request")
    neovim.type("ze")
    neovim.wait_for_lua("vim.fn.getline(1) == 'slow.ze'", "typed name")
    neovim.lua("release()")
    neovim.wait_for_lua("#told == 1", "names")
    assert told(neovim)[0]["position"] == {"line": 0, "character": 5}
    neovim.type(" slow.")
    neovim.wait_for_lua("#asked == 2", "second request")
    neovim.type("x = ")
    neovim.wait_for_lua("cancelled == 1", "cancelled request")
    neovim.lua("release()")
    assert len(told(neovim)) == 1


@pytest.mark.parametrize("text", ["order ", "f(order", "import {", "broken."])
def test_other_places_and_lists_with_keywords_tell_nothing(typing, text):
    neovim = typing()
    neovim.type(f"i{text}")
    neovim.wait_for_lua(f"vim.fn.getline(1) == '{text}'", "typed text")
    neovim.type("<CR>order.")
    neovim.wait_for_lua("#told == 1", "names of the next line")
    assert told(neovim)[0]["position"]["line"] == 1


def test_names_after_a_very_long_word_are_told_at_once(typing):
    neovim = typing()
    neovim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { ('x'):rep(200000) .. '(order' })")
    neovim.type("A.")
    neovim.wait_for_lua("#told == 1", "names")
    assert told(neovim)[0]["position"] == {"line": 0, "character": 200_007}


def test_the_setting_switches_it_off(typing):
    neovim = typing("settings = { known_names = false }")
    neovim.type("iorder.")
    neovim.wait_for_lua("vim.fn.getline(1) == 'order.'", "typed text")
    neovim.type("x")
    neovim.wait_for_lua("vim.list_contains(sent, 'textDocument/inlineCompletion')", "suggestion request")
    assert neovim.lua("return { #asked, #told }") == [0, 0]
