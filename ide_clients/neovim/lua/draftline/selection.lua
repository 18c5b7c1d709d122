-- Edits whole lines by an instruction. The new text appears as a diff inside the buffer, which does not change until the
-- user accepts it. There is at most one edit.

local config = require("draftline.config")
local ghost = require("draftline.ghost")
local keys = require("draftline.keys")
local server = require("draftline.server")

local M = {}

---@class draftline.Edit
---@field bufnr integer
---@field first integer first line, 0-based
---@field last integer the line after the last one
---@field tick integer the buffer's changedtick: an edit of other text is dropped
---@field old string[]
---@field new string[]? the lines so far
---@field is_done boolean
---@field client vim.lsp.Client
---@field request integer? the ID of the running LSP request
---@field id string
---@field restore fun() gives the keys back

local namespace = vim.api.nvim_create_namespace("draftline.edit")
local current = nil ---@type draftline.Edit?
local count = 0

local function tell(sentence, level)
  vim.notify("draftline: " .. sentence, level or vim.log.levels.WARN)
end

local function joined(lines)
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

local function mark(edit, row, options)
  vim.api.nvim_buf_set_extmark(edit.bufnr, namespace, edit.first + row - 1, 0, options)
end

-- Draw lines below a row of the old text. Row 0 is above its first line, where they show only with `topfill`.
local function draw_below(edit, row, lines)
  local drawn = vim.tbl_map(function(line)
    return { { ghost.expand_tabs(line, edit.bufnr) .. " ", "DraftlineAdded" } }
  end, lines)
  mark(edit, math.max(row, 1), { virt_lines = drawn, virt_lines_above = row == 0 })
  if row == 0 and edit.bufnr == vim.api.nvim_get_current_buf() and vim.fn.line("w0") == edit.first + 1 then
    vim.fn.winrestview({ topfill = #lines })
  end
end

-- Draw the lines that the edit removes, and below them those that it adds. The end of the old text, which an unfinished
-- edit lacks, stays as it is.
local function draw(edit)
  vim.api.nvim_buf_clear_namespace(edit.bufnr, namespace, 0, -1)
  local diff = (vim.text and vim.text.diff or vim.diff)(joined(edit.old), joined(edit.new), { result_type = "indices" })
  for _, hunk in ipairs(diff) do
    local start, removed, from, added = unpack(hunk)
    if removed > 0 and not edit.is_done and start + removed - 1 == #edit.old then
      start, removed = start - 1, 0
    end
    for row = start, start + removed - 1 do
      mark(edit, row, { line_hl_group = "DraftlineRemoved" })
    end
    if added > 0 then
      draw_below(edit, start + math.max(removed - 1, 0), vim.list_slice(edit.new, from, from + added - 1))
    end
  end
end

-- Remove the edit from the screen and stop its request. Return it, or nil if there is none.
local function close()
  local edit = current
  current = nil
  if not edit or not vim.api.nvim_buf_is_valid(edit.bufnr) then
    return edit
  end
  vim.api.nvim_clear_autocmds({ group = "draftline.edit" })
  vim.api.nvim_buf_clear_namespace(edit.bufnr, namespace, 0, -1)
  if edit.request then
    edit.client:cancel_request(edit.request)
  end
  edit.restore()
  return edit
end

--- Drop the edit, or cancel it while it is generated.
function M.reject()
  close()
end

--- Replace the lines by the edited ones. One undo takes it back.
function M.accept()
  if current and not current.is_done then
    return tell("the edit is not complete yet", vim.log.levels.INFO)
  end
  local edit = close()
  if edit and vim.api.nvim_buf_get_changedtick(edit.bufnr) == edit.tick then
    vim.api.nvim_buf_set_lines(edit.bufnr, edit.first, edit.last, true, edit.new)
  end
end

--- Return whether an edit is on the screen: "generating", "complete" or nil.
---@return "generating"|"complete"|nil
function M.state()
  return current and (current.is_done and "complete" or "generating") or nil
end

local function lines_of(text)
  local lines = vim.split((text:gsub("\r\n?", "\n"):gsub("\n$", "")), "\n", { plain = true })
  return text == "" and {} or lines
end

local function on_result(edit, err, result)
  if current ~= edit then
    return
  end
  edit.request = nil
  local reason = err and err.message or (result or {}).reason
  if not result or reason ~= "" then
    close()
    return tell(reason or "the edit failed")
  end
  edit.new, edit.is_done = lines_of(result.text), true
  if vim.deep_equal(edit.new, edit.old) then
    close()
    return tell("the model changes nothing", vim.log.levels.INFO)
  end
  draw(edit)
end

--- Show the text of an edit that is still growing.
function M.on_partial(params)
  if current and current.id == params.id then
    local new = lines_of(params.text)
    current.new = vim.list_slice(new, 1, #new - 1) -- the last line is still growing
    draw(current)
  end
end

local function define_highlights()
  vim.api.nvim_set_hl(0, "DraftlineRemoved", { link = "DiffDelete", default = true })
  vim.api.nvim_set_hl(0, "DraftlineAdded", { link = "DiffAdd", default = true })
end

--- Edit whole lines of the current buffer by an instruction.
---@param first integer 1-based
---@param last integer
---@param instruction string
function M.start(first, last, instruction)
  close()
  require("draftline.next_edit").hide()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client then
    return tell("the server does not run in this buffer", vim.log.levels.ERROR)
  end
  count = count + 1
  local edit = {
    bufnr = bufnr,
    first = first - 1,
    last = last,
    tick = vim.api.nvim_buf_get_changedtick(bufnr),
    old = vim.api.nvim_buf_get_lines(bufnr, first - 1, last, true),
    new = {},
    is_done = false,
    client = client,
    id = tostring(count),
  }
  current = edit
  define_highlights()
  local group = vim.api.nvim_create_augroup("draftline.edit", {})
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "BufUnload" }, {
    group = group,
    buffer = bufnr,
    callback = M.reject,
  })
  edit.restore = keys.take_for_edit(bufnr, M.accept, M.reject, { accept = config.options.keys.accept, refuse = "<Esc>" })
  local range = { start = { line = first - 1, character = 0 }, ["end"] = { line = last, character = 0 } }
  local params = {
    id = edit.id,
    uri = vim.uri_from_bufnr(bufnr),
    version = vim.lsp.util.buf_versions[bufnr],
    range = range,
    instruction = instruction,
  }
  local is_sent, request = client:request("draftline/edit", params, function(err, result)
    on_result(edit, err, result)
  end, bufnr)
  edit.request = request
  if not is_sent then
    close()
    tell("the server does not answer", vim.log.levels.ERROR)
  end
end

--- Ask for an instruction, then edit whole lines by it.
---@param first integer 1-based
---@param last integer
function M.ask(first, last)
  vim.ui.input({ prompt = "Edit: " }, function(instruction)
    if instruction and vim.trim(instruction) ~= "" then
      M.start(first, last, instruction)
    end
  end)
end

return M
