-- The next edit: what the user's last edits imply for other lines, shown as a dim diff in normal mode. The first Tab jumps
-- to it, also in another buffer, the next one applies it; the user may map a key that refuses it for good. In insert mode
-- the suggestion at the cursor goes first.

local config = require("draftline.config")
local ghost = require("draftline.ghost")
local keys = require("draftline.keys")
local server = require("draftline.server")

local M = {}

local METHOD = "draftline/nextEdit"
local PAUSE_MS = 100 -- after a change in normal mode, which may be one of several, and after a diagnostic
local MAX_DIAGNOSTICS, MAX_MESSAGE = 64, 300 -- what the server reads of them
local namespace = vim.api.nvim_create_namespace("draftline.next_edit")

---@class draftline.NextEdit
---@field bufnr integer
---@field here integer the buffer in front, which another one's edit is a hint in
---@field first integer first row
---@field old string[] text that it replaces, from the first column of `first` on
---@field new string[] text in its place
---@field command lsp.Command
---@field id string
---@field tick integer the changedtick of the buffer in front
---@field version integer the document's version for the server
---@field location lsp.Location where it is
---@field restore fun() gives the keys back

local shown = nil ---@type draftline.NextEdit?
local pending = nil ---@type { here: integer, tick: integer, cancel: fun() }? the running request
local timer = assert(vim.uv.new_timer())
local told = {} ---@type table<integer, table> the diagnostics that the server knows, by buffer
local telling = assert(vim.uv.new_timer())

local function lines_of(text)
  return vim.split((text:gsub("\r\n", "\n")), "\n", { plain = true })
end

local function last_row(edit)
  return edit.first + #edit.old - 1
end

-- Return whether the buffer has the version and exactly the text that an edit names.
local function is_current(edit)
  if vim.lsp.util.buf_versions[edit.bufnr] ~= edit.version then
    return false
  end
  local last = last_row(edit)
  local is_read, text = pcall(vim.api.nvim_buf_get_text, edit.bufnr, edit.first, 0, last, #edit.old[#edit.old], {})
  return is_read and vim.deep_equal(text, edit.old)
end

-- Return whether a word goes on at a byte of a line.
local function splits_word(line, at)
  return line:sub(at, at + 1):match("^[%w_\128-\255][%w_\128-\255]$") ~= nil
end

-- Return where a line differs from its new version: start and end in bytes, and the new text there. Words stay whole.
local function changed(old, new)
  local shorter, start, same = math.min(#old, #new), 0, 0
  while start < shorter and old:byte(start + 1) == new:byte(start + 1) do
    start = start + 1
  end
  while same < shorter - start and old:byte(#old - same) == new:byte(#new - same) do
    same = same + 1
  end
  while start > 0 and (splits_word(old, start) or splits_word(new, start)) do
    start = start - 1
  end
  while same > 0 and (splits_word(old, #old - same) or splits_word(new, #new - same)) do
    same = same - 1
  end
  return start, #old - same, new:sub(start + 1, #new - same)
end

local function mark(edit, ...)
  vim.api.nvim_buf_set_extmark(edit.here, namespace, ...)
end

local function draw_line(edit)
  local start, stop, text = changed(edit.old[1], edit.new[1])
  mark(edit, edit.first, start, { end_col = stop, hl_group = "DraftlineEditOld" })
  mark(edit, edit.first, stop, { virt_text = { { text, "DraftlineEditNew" } }, virt_text_pos = "inline" })
end

local function draw_lines(edit)
  local last = last_row(edit)
  mark(edit, edit.first, 0, { end_row = last, end_col = #edit.old[#edit.old], hl_group = "DraftlineEditOld" })
  local below = vim.tbl_map(function(line)
    return { { ghost.expand_tabs(line, edit.bufnr) .. " ", "DraftlineEditNew" } }
  end, edit.new)
  if not vim.deep_equal(edit.new, { "" }) then
    mark(edit, last, 0, { virt_lines = below })
  end
end

-- Return what an edit does, in a few words: the first line that it writes, or that it deletes a line.
local function summary(edit)
  local row = 1
  while edit.old[row] and edit.old[row] == edit.new[row] do
    row = row + 1
  end
  local written = vim.trim(edit.new[row] or "")
  return written ~= "" and written or "delete " .. vim.trim(edit.old[row] or "")
end

local function draw(edit)
  vim.api.nvim_buf_clear_namespace(edit.here, namespace, 0, -1)
  local line, is_here = edit.first + 1, edit.here == edit.bufnr
  local is_visible = vim.fn.line("w0") <= line and line <= vim.fn.line("w$") and vim.fn.foldclosed(line) == -1
  if not (is_here and is_visible) then
    local place = is_here and "line " or vim.fn.pathshorten(vim.fn.bufname(edit.bufnr)) .. ":"
    local hint = (" → %s%d: %s"):format(place, line, summary(edit))
    mark(edit, vim.fn.line(".") - 1, 0, { virt_text = { { hint, "DraftlineEditNew" } } })
  elseif #edit.old == 1 and #edit.new == 1 then
    draw_line(edit)
  else
    draw_lines(edit)
  end
end

--- Remove the edit from the screen and stop the request for one. Return the edit, nil if there was none.
---@return draftline.NextEdit?
function M.hide()
  local edit = shown
  shown = nil
  timer:stop()
  if pending then
    pending.cancel()
    pending = nil
  end
  if edit and vim.api.nvim_buf_is_valid(edit.here) then
    edit.restore()
    vim.api.nvim_buf_clear_namespace(edit.here, namespace, 0, -1)
  end
  return edit
end

--- Return whether an edit is being requested, or will be after a pause.
---@return boolean
function M.is_waiting()
  return pending ~= nil or timer:is_active()
end

-- Run a command about an edit that left the screen, then request the next one.
local function tell(edit, command)
  local client = server.client(edit.bufnr)
  if client then
    client:exec_cmd(command, { bufnr = edit.bufnr })
    M.request(server.AUTOMATIC)
  end
end

local function show(edit)
  shown = edit
  edit.here = vim.api.nvim_get_current_buf()
  edit.tick = vim.api.nvim_buf_get_changedtick(edit.here)
  draw(edit)
  local chosen = config.options.keys
  local given = { accept = chosen.accept_edit, refuse = chosen.refuse_edit }
  edit.restore = keys.take_for_edit(edit.here, M.accept, M.refuse, given)
end

--- Jump to the edit. If the cursor is there, apply it; one undo takes it back.
function M.accept()
  local edit = shown
  if not edit or not is_current(edit) then
    M.hide()
  elseif edit.here ~= edit.bufnr or vim.fn.line(".") ~= edit.first + 1 or vim.fn.foldclosed(".") ~= -1 then
    M.hide() -- the keys are those of another buffer
    vim.lsp.util.show_document(edit.location, "utf-8", { reuse_win = edit.here ~= edit.bufnr })
    show(edit)
  else
    M.hide()
    vim.api.nvim_buf_set_text(edit.bufnr, edit.first, 0, last_row(edit), #edit.old[#edit.old], edit.new)
    tell(edit, edit.command)
  end
end

--- Refuse the edit: it never comes back.
function M.refuse()
  local edit = M.hide()
  if edit then
    tell(edit, { title = "Refuse", command = "draftline.nextEditRefused", arguments = { edit.id } })
  end
end

local function on_reply(bufnr, result)
  local is_here = vim.api.nvim_get_current_buf() == bufnr and vim.api.nvim_get_mode().mode == "n"
  local given = result and result.edits[1]
  if not given or not is_here or require("draftline.selection").state() then -- an edit by an instruction has these keys
    return
  end
  local edit = { first = given.range.start.line, id = given.id, command = given.command }
  edit.bufnr, edit.version = vim.uri_to_bufnr(given.textDocument.uri), given.textDocument.version
  edit.location = { uri = given.textDocument.uri, range = given.range }
  edit.old, edit.new = lines_of(given.oldText), lines_of(given.text)
  if is_current(edit) then
    show(edit)
  end
end

--- Request the next edit.
---@param kind integer? nil: a manual request
function M.request(kind)
  M.hide()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client or not config.is_enabled then
    return
  end
  local params = { textDocument = { uri = vim.uri_from_bufnr(bufnr) }, context = { triggerKind = kind or server.INVOKED } }
  local this = { here = bufnr, tick = vim.api.nvim_buf_get_changedtick(bufnr) }
  pending = this
  local _, request = client:request(METHOD, params, function(_, result)
    if pending == this then
      pending = nil
      on_reply(bufnr, result)
    end
  end, bufnr)
  this.cancel = function()
    if request then
      client:cancel_request(request)
    end
  end
end

local function on_change()
  local tick = vim.api.nvim_buf_get_changedtick(0)
  local known = pending or shown
  if known and known.here == vim.api.nvim_get_current_buf() and known.tick == tick then
    return -- this text's edit is requested or shown already: an edit was applied
  end
  M.hide()
  timer:start(
    PAUSE_MS,
    0,
    vim.schedule_wrap(function()
      if vim.api.nvim_get_mode().mode == "n" then
        M.request(server.AUTOMATIC)
      end
    end)
  )
end

-- Tell the server what other tools report about the current buffer, and request the edit that this may imply.
local function tell_diagnostics()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client then
    return
  end
  local found = vim.diagnostic.get(bufnr, { severity = { min = vim.diagnostic.severity.WARN } })
  local params = { uri = vim.uri_from_bufnr(bufnr), version = vim.lsp.util.buf_versions[bufnr] }
  params.diagnostics = vim.tbl_map(function(each)
    local at = { line = each.lnum, character = 0 } -- the server reads no columns
    local message = vim.fn.strcharpart(each.message, 0, MAX_MESSAGE)
    return { range = { start = at, ["end"] = at }, severity = each.severity, message = message }
  end, vim.list_slice(found, 1, MAX_DIAGNOSTICS))
  if vim.deep_equal(told[bufnr], params) then
    return
  end
  told[bufnr] = params
  client:notify("draftline/diagnostics", params)
  if #found > 0 and not shown and vim.api.nvim_get_mode().mode == "n" then
    M.request(server.AUTOMATIC)
  end
end

--- Watch a buffer and propose edits in it.
---@param bufnr integer
function M.attach(bufnr)
  -- Links only: `:colorscheme` clears other attributes.
  vim.api.nvim_set_hl(0, "DraftlineEditOld", { link = "@markup.strikethrough", default = true })
  vim.api.nvim_set_hl(0, "DraftlineEditNew", { link = "Comment", default = true })
  local group = vim.api.nvim_create_augroup("draftline.next_edit." .. bufnr, {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ "TextChanged", "InsertLeave" }, on_change)
  on({ "InsertEnter", "BufLeave", "BufUnload" }, function()
    M.hide()
  end)
  on({ "DiagnosticChanged", "BufEnter" }, function() -- or they changed in the background
    if bufnr == vim.api.nvim_get_current_buf() and not config.is_off("next_edit") then
      telling:start(PAUSE_MS, 0, vim.schedule_wrap(tell_diagnostics))
    end
  end)
  on("BufUnload", function()
    told[bufnr] = nil
  end)
  on({ "CursorMoved", "WinScrolled" }, function()
    if shown and is_current(shown) then -- a change is told after the move of the cursor
      draw(shown)
    end
  end)
end

return M
