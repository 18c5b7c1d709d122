-- What the server is told about suggestions: shown after the read delay, partly accepted, put away, cursor at rest.

local config = require("draftline.config")
local server = require("draftline.server")

local M = {}

local seen = { key = nil, is_reported = false, timer = nil } -- the suggestion on the screen
local rest_timer = nil

local function stop(timer)
  if timer and not timer:is_closing() then
    timer:stop()
    timer:close()
  end
end

local function notify(bufnr, method, params)
  local client = server.client(bufnr)
  if client then
    client:notify(method, params)
  end
end

--- A suggestion stands on the screen: it counts once it stood there for the read delay.
---@param offer draftline.Offer
function M.visible(offer)
  local key = ("%s:%d"):format(offer.id, offer.index)
  if seen.key == key then
    return
  end
  M.hidden()
  seen = { key = key, is_reported = false }
  seen.timer = vim.defer_fn(function()
    seen.is_reported = true
    local command = offer.items[offer.index].command
    notify(offer.place.bufnr, "textDocument/didShowCompletion", { item = { command = command } })
  end, config.options.read_delay_ms)
end

--- Nothing stands on the screen any more.
function M.hidden()
  stop(seen.timer)
  seen = { key = nil, is_reported = false, timer = nil }
end

--- A part of a suggestion was inserted.
---@param offer draftline.Offer
---@param inserted string everything of it that stands in the buffer now
function M.partly_accepted(offer, inserted)
  notify(offer.place.bufnr, "textDocument/didPartiallyAcceptCompletion", {
    item = { command = offer.items[offer.index].command },
    acceptedLength = vim.str_utfindex(inserted, "utf-16"),
  })
end

--- A suggestion was inserted whole: run the command that the server gave with it.
---@param offer draftline.Offer
function M.accepted(offer)
  local client = server.client(offer.place.bufnr)
  if client then
    client:exec_cmd(offer.items[offer.index].command, { bufnr = offer.place.bufnr })
  end
end

--- A suggestion was put away.
---@param offer draftline.Offer
---@param reason "dismissed"|"typedOver"|"cursorMoved"
function M.rejected(offer, reason)
  notify(offer.place.bufnr, "draftline/didRejectCompletion", { id = offer.id, reason = reason })
end

--- The cursor moved: say where, once it rests.
function M.cursor_moved()
  stop(rest_timer)
  rest_timer = vim.defer_fn(function()
    local bufnr = vim.api.nvim_get_current_buf()
    local client = server.client(bufnr)
    if client then
      local place = vim.lsp.util.make_position_params(0, client.offset_encoding)
      client:notify("draftline/didMoveCursor", { uri = place.textDocument.uri, position = place.position })
    end
  end, config.options.rest_delay_ms)
end

return M
