-- Tells the server which names the buffer's other language servers know where one begins: after a dot, in an import.
-- They are asked once for each such place. Nothing waits for them.

local config = require("draftline.config")
local server = require("draftline.server")

local M = {}

local METHOD = "textDocument/completion"
local DEADLINE_MS = 2000
local MAX_NAMES = 2000 -- that the server takes
-- Before a name that some type, module or package has.
local PLACES = { "[%w_%)%]\"']%??%.$", "%->$", "::$", "^%s*import%s[^\"'{}()]*$", "^%s*from%s+%S+%s+import%s%(?[^\"'()]*$" }
local IDENTIFIER = "^[%s%.?]*([%a_$\128-\255][%w_$\128-\255]*)"
local KIND = vim.lsp.protocol.CompletionItemKind

local asked = nil ---@type { bufnr: integer, row: integer, head: string, names: table<string, true>, running: table<vim.lsp.Client, integer> }?

local function stop()
  for client, request in pairs(asked and asked.running or {}) do
    client:cancel_request(request)
  end
  if asked then
    asked.running = {}
  end
end

-- Add the names of a server's items; nothing if they are of any place: a server that cannot read unfinished code offers
-- keywords.
local function add(names, items)
  local found = {}
  for _, item in ipairs(items) do
    if item.kind == KIND.Keyword then
      return
    end
    local edit = type(item.textEdit) == "table" and item.textEdit.newText
    local name = (edit or item.insertText or item.label):match(IDENTIFIER)
    if name and item.kind ~= KIND.Text and item.kind ~= KIND.Snippet then
      found[name] = true
    end
  end
  for name in pairs(found) do
    names[name] = true
  end
end

local function tell(place)
  local own, names = server.client(place.bufnr), vim.tbl_keys(place.names)
  local line = vim.api.nvim_buf_get_lines(place.bufnr, place.row, place.row + 1, false)[1] or ""
  if not own or #names == 0 or #names > MAX_NAMES or not vim.startswith(line, place.head) then
    return
  end
  own:notify("draftline/names", {
    uri = vim.uri_from_bufnr(place.bufnr),
    version = vim.lsp.util.buf_versions[place.bufnr],
    position = { line = place.row, character = vim.str_utfindex(place.head, own.offset_encoding) },
    names = names,
  })
end

local function ask(place, client)
  local position = { line = place.row, character = vim.str_utfindex(place.head, client.offset_encoding) }
  local params = { textDocument = { uri = vim.uri_from_bufnr(place.bufnr) }, position = position }
  params.context = { triggerKind = vim.lsp.protocol.CompletionTriggerKind.Invoked }
  local _, request = client:request(METHOD, params, function(err, result)
    place.running[client] = nil
    if not err and result and place == asked and vim.api.nvim_buf_is_loaded(place.bufnr) then
      add(place.names, result.items or result)
      tell(place)
    end
  end, place.bufnr)
  place.running[client] = request
end

local function on_text_changed(bufnr)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local head = vim.api.nvim_get_current_line():sub(1, column):gsub("%f[%w_$\128-\255][%w_$\128-\255]+$", "")
  local is_same = asked and asked.bufnr == bufnr and asked.row == row - 1 and asked.head == head
  if is_same or config.is_off("known_names") then
    return
  end
  stop()
  local place = { bufnr = bufnr, row = row - 1, head = head, names = {}, running = {} }
  asked = place
  local function is_place(pattern)
    return head:match(pattern) ~= nil
  end
  if not vim.iter(PLACES):any(is_place) then
    return
  end
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = bufnr, method = METHOD })) do
    if client.name ~= server.NAME then
      ask(place, client)
    end
  end
  vim.defer_fn(function()
    if place == asked then
      stop()
    end
  end, DEADLINE_MS)
end

--- Watch a buffer.
---@param bufnr integer
function M.attach(bufnr)
  local group = vim.api.nvim_create_augroup("draftline.names." .. bufnr, {})
  vim.api.nvim_create_autocmd({ "TextChangedI", "TextChangedP" }, {
    group = group,
    buffer = bufnr,
    callback = function()
      on_text_changed(bufnr)
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, { group = group, buffer = bufnr, callback = stop })
end

return M
