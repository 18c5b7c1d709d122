-- Suggestions as items of a completion menu, for the sources of blink.cmp and nvim-cmp.

local config = require("draftline.config")
local server = require("draftline.server")

local M = {}

local METHOD = "textDocument/inlineCompletion"

-- Return the item of a suggestion. It replaces the word before the cursor as well, because menus filter by that word.
local function item_of(raw, word, position, filetype)
  local whole = word .. raw.insertText:gsub("\r\n?", "\n")
  local _, more = vim.trim(whole):gsub("\n", "")
  local start = { line = position.line, character = position.character - #word } -- a word has one unit for each byte
  return {
    label = vim.trim(vim.split(vim.trim(whole), "\n", { plain = true })[1]),
    labelDetails = { description = "draftline" },
    kind = vim.lsp.protocol.CompletionItemKind.Text,
    kind_name = "draftline",
    detail = more > 0 and ("draftline, %d lines"):format(more + 1) or "draftline",
    documentation = { kind = "markdown", value = ("```%s\n%s\n```"):format(filetype, whole) },
    sortText = " ",
    filterText = whole:match("^%s*[^\n]*"),
    insertTextFormat = vim.lsp.protocol.InsertTextFormat.PlainText,
    insertTextMode = 1, -- as it is: its lines are indented already
    textEdit = { newText = whole, range = { start = start, ["end"] = raw.range["end"] } },
    command = raw.command,
  }
end

--- Return whether the server serves the current buffer and suggestions are on.
---@return boolean
function M.is_available()
  return config.is_enabled and server.client(0) ~= nil
end

--- Request the suggestions at the cursor.
---@param is_manual boolean
---@param callback fun(items: lsp.CompletionItem[])
---@return fun() cancel
function M.request(is_manual, callback)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client or not config.is_enabled then
    callback({})
    return function() end
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = is_manual and server.INVOKED or server.AUTOMATIC }
  local word = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2]):match("%f[%w_][%w_]+$") or ""
  local filetype = vim.bo[bufnr].filetype
  local _, request = client:request(METHOD, params, function(err, result)
    local items = {}
    for _, raw in ipairs(not err and result.items or {}) do
      items[#items + 1] = vim.tbl_extend("keep", item_of(raw, word, params.position, filetype), { client_id = client.id })
    end
    callback(items)
  end, bufnr)
  return function()
    if request then
      client:cancel_request(request)
    end
  end
end

--- Report that an item was accepted.
---@param item lsp.CompletionItem
function M.accepted(item)
  local client = server.client(0)
  if client and item.command then
    client:exec_cmd(item.command)
  end
end

return M
