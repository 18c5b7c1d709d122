-- The next edit: what the user's last edits imply for other lines, shown as a dim diff in normal mode. Tab jumps to it,
-- Tab again applies it, Escape refuses it for good. In insert mode the key belongs to the suggestion at the cursor.

local server = require("draftline.server")

local M = {}

local AUTOMATIC, INVOKED = 2, 1 -- LSP 3.18, InlineCompletionTriggerKind
local METHOD = "draftline/nextEdit"
local PAUSE_MS = 400 -- after a change; the engine answers completions first
local namespace = vim.api.nvim_create_namespace("draftline.next_edit")

local shown = nil ---@type draftline.NextEdit?
local timer = nil
local serial = 0 -- number of the newest request

---@class draftline.NextEdit
---@field bufnr integer
---@field first integer first row
---@field old string[] lines that it replaces
---@field new string[]
---@field command lsp.Command
---@field id string
---@field mappings table<string, table|false> key -> its earlier mapping in the buffer

local function lines_of(text)
  local lines = vim.split((text:gsub("\r\n", "\n")), "\n", { plain = true })
  return lines
end

-- Return the edit in lines. Return nil if the buffer does not have the text that it names.
local function read(bufnr, edit)
  if edit.textDocument.version ~= vim.lsp.util.buf_versions[bufnr] then
    return nil
  end
  local old, new = lines_of(edit.oldText), lines_of(edit.text)
  if edit.range["end"].character == 0 and edit.range["end"].line > edit.range.start.line then
    table.remove(old) -- whole lines with their ends
    table.remove(new)
  end
  local one = { bufnr = bufnr, first = edit.range.start.line, old = old, new = new }
  one.command, one.id, one.mappings = edit.command, edit.id, {}
  return M.is_current(one) and one or nil
end

--- Return whether the buffer has exactly the text that an edit replaces.
---@param one draftline.NextEdit
---@return boolean
function M.is_current(one)
  return vim.deep_equal(vim.api.nvim_buf_get_lines(one.bufnr, one.first, one.first + #one.old, false), one.old)
end

local function unmap(one)
  for key, mapping in pairs(one.mappings) do
    pcall(vim.keymap.del, "n", key, { buffer = one.bufnr }) -- the user may have unmapped it
    if mapping then
      vim.api.nvim_buf_call(one.bufnr, function()
        vim.fn.mapset("n", false, mapping)
      end)
    end
  end
  one.mappings = {}
end

--- Remove the edit from the screen.
function M.hide()
  if shown and vim.api.nvim_buf_is_valid(shown.bufnr) then
    unmap(shown)
    vim.api.nvim_buf_clear_namespace(shown.bufnr, namespace, 0, -1)
  end
  shown = nil
end

local function map(one, key, action)
  local before = vim.fn.maparg(key, "n", false, true)
  one.mappings[key] = before.buffer == 1 and before or false
  vim.keymap.set("n", key, action, { buffer = one.bufnr, nowait = true, desc = "draftline: next edit" })
end

local function draw(one)
  vim.api.nvim_buf_clear_namespace(one.bufnr, namespace, 0, -1)
  local is_visible = vim.fn.line("w0") <= one.first + 1 and one.first + 1 <= vim.fn.line("w$")
  if not is_visible then
    local hint = (" ⇥ line %d: %s"):format(one.first + 1, vim.trim(one.new[1] or "delete"))
    local row = vim.api.nvim_win_get_cursor(0)[1] - 1
    vim.api.nvim_buf_set_extmark(one.bufnr, namespace, row, 0, { virt_text = { { hint, "DraftlineGhost" } } })
    return
  end
  for i, line in ipairs(one.old) do
    local row = one.first + i - 1
    vim.api.nvim_buf_set_extmark(one.bufnr, namespace, row, 0, { end_col = #line, hl_group = "DraftlineEditOld" })
  end
  local below = vim.tbl_map(function(line)
    return { { line, "DraftlineGhost" } }
  end, one.new)
  vim.api.nvim_buf_set_extmark(one.bufnr, namespace, one.first + #one.old - 1, 0, { virt_lines = below })
end

--- Jump to the edit, or apply it if the cursor is there.
function M.accept()
  local one = shown
  if not one or not M.is_current(one) then
    return M.hide()
  end
  if vim.api.nvim_win_get_cursor(0)[1] ~= one.first + 1 then
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { one.first + 1, 0 })
    return draw(one)
  end
  M.hide()
  vim.api.nvim_buf_set_lines(one.bufnr, one.first, one.first + #one.old, false, one.new)
  local client = server.client(one.bufnr)
  if client then
    client:exec_cmd(one.command, { bufnr = one.bufnr })
  end
  M.request(AUTOMATIC)
end

--- Refuse the edit: it never comes back.
function M.refuse()
  local one = shown
  M.hide()
  local client = one and server.client(one.bufnr)
  if one and client then
    local command = { title = "Refuse", command = "draftline.nextEditRefused", arguments = { one.id } }
    client:exec_cmd(command, { bufnr = one.bufnr })
    M.request(AUTOMATIC)
  end
end

local function show(one)
  M.hide()
  shown = one
  draw(one)
  map(one, "<Tab>", M.accept)
  map(one, "<Esc>", M.refuse)
end

--- Request the next edit.
---@param kind integer? nil: a manual request
function M.request(kind)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client or not require("draftline.config").is_enabled then
    return
  end
  serial = serial + 1
  local number = serial
  local params = { textDocument = { uri = vim.uri_from_bufnr(bufnr) }, context = { triggerKind = kind or INVOKED } }
  client:request(METHOD, params, function(err, result)
    local is_here = vim.api.nvim_get_current_buf() == bufnr and vim.api.nvim_get_mode().mode == "n"
    if err or number ~= serial or not is_here then
      return
    end
    local edit = result.edits[1]
    local one = edit and read(bufnr, edit)
    if one then
      show(one)
    else
      M.hide()
    end
  end, bufnr)
end

local function ask_soon()
  M.hide()
  if timer then
    timer:stop()
    timer:close()
  end
  timer = vim.defer_fn(function()
    timer = nil
    if vim.api.nvim_get_mode().mode == "n" then
      M.request(AUTOMATIC)
    end
  end, PAUSE_MS)
end

--- Watch a buffer and propose edits in it.
---@param bufnr integer
function M.attach(bufnr)
  local group = vim.api.nvim_create_augroup("draftline.next_edit." .. bufnr, {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ "TextChanged", "InsertLeave" }, ask_soon)
  on({ "InsertEnter", "BufLeave" }, M.hide)
  on({ "CursorMoved", "WinScrolled" }, function()
    if shown then
      draw(shown)
    end
  end)
end

return M
