-- Tells the server what happens to suggestions (shown, accepted, partly accepted, rejected) and where the cursor
-- pauses.

local config = require("draftline.config")
local server = require("draftline.server")

local M = {}

local seen = nil ---@type string? the suggestion on the screen, whose read delay has started
local read_timer, pause_timer = assert(vim.uv.new_timer()), assert(vim.uv.new_timer())

local function notify(bufnr, method, params)
  local client = server.client(bufnr)
  if client then
    client:notify(method, params)
  end
end

--- Note that a suggestion is on the screen. It counts as shown after the read delay.
---@param offer draftline.Offer
function M.visible(offer)
  local key = ("%s:%d"):format(offer.id, offer.index)
  if seen == key then
    return
  end
  seen = key
  local function tell()
    local command = offer.items[offer.index].command
    notify(offer.origin.bufnr, "textDocument/didShowCompletion", { item = { command = command } })
  end
  read_timer:start(config.options.read_delay_ms, 0, vim.schedule_wrap(tell))
end

--- Note that no suggestion is on the screen.
function M.hidden()
  read_timer:stop()
  seen = nil
end

--- Report that a part of a suggestion was inserted.
---@param offer draftline.Offer
---@param inserted string all inserted text of the suggestion
function M.partly_accepted(offer, inserted)
  notify(offer.origin.bufnr, "textDocument/didPartiallyAcceptCompletion", {
    item = { command = offer.items[offer.index].command },
    acceptedLength = vim.str_utfindex(inserted, "utf-16"),
  })
end

--- Report that a suggestion was accepted: run the command of its item.
---@param offer draftline.Offer
function M.accepted(offer)
  local client = server.client(offer.origin.bufnr)
  if client then
    client:exec_cmd(offer.items[offer.index].command, { bufnr = offer.origin.bufnr })
  end
end

--- Report that a suggestion was rejected.
---@param offer draftline.Offer
---@param reason "dismissed"|"typedOver"|"cursorMoved"
function M.rejected(offer, reason)
  notify(offer.origin.bufnr, "draftline/didRejectCompletion", { id = offer.id, reason = reason })
end

--- Report the cursor's position once it pauses there.
function M.cursor_moved()
  local function tell()
    local bufnr = vim.api.nvim_get_current_buf()
    local client = server.client(bufnr)
    if client then
      local cursor = vim.lsp.util.make_position_params(0, client.offset_encoding)
      client:notify("draftline/didMoveCursor", { uri = cursor.textDocument.uri, position = cursor.position })
    end
  end
  pause_timer:start(config.options.rest_delay_ms, 0, vim.schedule_wrap(tell))
end

--- Report the cursor's position whenever a buffer is entered: there is no CursorMoved if the cursor is where it was in
--- the buffer before. The server's status is about the buffer that it knows the cursor to be in.
---@param bufnr integer
function M.watch(bufnr)
  local group = vim.api.nvim_create_augroup(("draftline.signals.%d"):format(bufnr), {})
  vim.api.nvim_create_autocmd("BufEnter", { group = group, buffer = bufnr, callback = M.cursor_moved })
  M.cursor_moved()
end

return M
