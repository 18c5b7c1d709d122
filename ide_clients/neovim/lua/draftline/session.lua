-- The life of a suggestion in the editor: requested, drawn while it streams, narrowed by typing, accepted or dismissed.
-- There is one cursor in insert mode, so there is at most one offer.

local config = require("draftline.config")
local ghost = require("draftline.ghost")
local keys = require("draftline.keys")
local offers = require("draftline.offer")
local popup = require("draftline.popup")
local requests = require("draftline.requests")
local server = require("draftline.server")
local signals = require("draftline.signals")

local M = {}

local METHOD = "textDocument/inlineCompletion"

local offer = nil ---@type draftline.Offer?
local typed_to = nil ---@type draftline.Cursor? the cursor at the last change of the text
local wants_next = false -- the running request was made to show its second suggestion

local function group_of(bufnr)
  return "draftline.buffer." .. bufnr
end

-- Nothing removes what is drawn in another buffer: its type gets no suggestions.
local function is_watched(bufnr)
  return vim.fn.exists("#" .. group_of(bufnr)) == 1
end

local function is_inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
end

local function hide()
  signals.hidden()
  if offer then
    ghost.clear(offer.origin.bufnr)
    keys.restore(offer.origin.bufnr)
  end
end

--- Remove the suggestion.
---@param reason ("dismissed"|"typedOver"|"cursorMoved")? nil if the user did not reject it
local function drop(reason)
  if offer then
    hide()
    if reason then
      signals.rejected(offer, reason)
    end
    offer = nil
  end
end

-- Draw the remainder of the offer at the cursor. If the item on the screen does not continue what the user typed, draw
-- another item that does. Return false if there is none.
local function show()
  local now = offers.cursor()
  local fitting = offer and offers.fitting(offer, now) or {}
  local remainder = offer and offers.remainder(offer, now)
  local is_spent = not remainder or (remainder.text == "" and remainder.is_final)
  if fitting[1] and not offer.is_partly_accepted and is_spent then
    offer.index = fitting[1]
    remainder = offers.remainder(offer, now)
  end
  if not remainder then
    return false
  end
  local is_covered = config.options.hide_with_popup_menu and popup.is_open()
  if remainder.text == "" or is_covered or not is_inserting() then
    hide()
  else
    local shown = vim.fn.index(fitting, offer.index) + 1
    ghost.draw(now, remainder, #fitting > 1 and ("%d/%d"):format(shown, #fitting) or nil)
    keys.map(now.bufnr)
    signals.visible(offer)
  end
  return remainder.text ~= "" or not offer.is_done
end

-- Remove an offer that is complete and has no remainder: the user typed or accepted it while it was generated.
local function finish(ended)
  local remainder = offers.remainder(ended, offers.cursor())
  drop()
  if remainder and ended.is_partly_accepted then
    signals.accepted(ended)
  else
    M.request_automatically()
  end
end

-- Show the offer for a request, unless a newer one is on the screen.
---@param index integer? the suggestion to show; nil: keep the one on the screen
local function adopt(new_offer, number, index)
  local before = offer
  if before and number < before.serial then
    return
  end
  new_offer.serial = number
  local is_same = before and before.id == new_offer.id
  new_offer.index = math.min(index or (is_same and before.index) or 1, #new_offer.items)
  new_offer.is_partly_accepted = is_same and before.is_partly_accepted
  offer = new_offer
  if show() then
    return
  elseif before and before.serial == number then
    finish(new_offer)
  else
    offer = before
  end
end

local function on_reply(number, err, result)
  local one = requests.open[number]
  if not one or err or not is_inserting() then
    requests.open[number] = nil
    return
  end
  requests.note_answer(number)
  local client = vim.lsp.get_client_by_id(one.client)
  local new_offer = client and offers.read(result.items, one.origin, client.offset_encoding)
  if new_offer then
    adopt(new_offer, number, wants_next and number == requests.newest and 2 or nil)
  elseif number == requests.newest then
    drop()
  end
end

local function send_request(kind)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client or not config.is_enabled or not is_watched(bufnr) or not client:supports_method(METHOD, bufnr) then
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local version = vim.lsp.util.buf_versions[bufnr]
  local one = { origin = offers.cursor(), position = params.position, version = version, client = client.id }
  local number = requests.add(one)
  local is_sent, request = client:request(METHOD, params, function(err, result)
    on_reply(number, err, result)
  end, bufnr)
  one.request = request
  if not is_sent then
    requests.open[number] = nil
  end
end

--- Make an automatic request: the server debounces it and may hide its suggestions.
function M.request_automatically()
  send_request(server.AUTOMATIC)
end

--- Show text that is still growing, or add alternatives to the suggestion on the screen.
function M.on_partial(params, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for number = requests.newest, 1, -1 do
    local one = requests.open[number]
    if not one or not client then
      return -- the request is superseded or cancelled, or the client has stopped
    end
    local is_reply = requests.is_answered_by(one, params)
    if is_reply and one.is_answered and not (offer and offer.serial == number) then
      return -- accepted or dismissed
    elseif is_reply then
      local new_offer = offers.read(params.items, one.origin, client.offset_encoding)
      if new_offer and is_inserting() then
        new_offer.is_done = params.done
        adopt(new_offer, number)
      end
      return
    end
  end
end

local function on_text_changed()
  wants_next = false
  local now, before = offers.cursor(), typed_to
  typed_to = now
  local is_deleting = before and before.row == now.row and now.column < before.column
  if offer and not is_deleting and show() then
    return
  end
  drop("typedOver")
  M.request_automatically()
end

local function on_cursor_moved()
  signals.cursor_moved()
  if offer and not show() then
    drop("cursorMoved")
  end
end

--- Make a manual request, which the server answers at any position.
function M.request()
  send_request(server.INVOKED)
end

--- Show another suggestion that continues what the user typed. If there is none, request more.
---@param step integer
function M.cycle(step)
  if not offer then
    return
  end
  local fitting = offers.fitting(offer, offers.cursor())
  local shown = vim.fn.index(fitting, offer.index) -- counts from 0
  if shown < 0 or #fitting == 1 then
    wants_next = true
    return send_request(server.INVOKED)
  end
  offer.index = fitting[(shown + step) % #fitting + 1]
  show()
end

--- Dismiss the suggestion and cancel all requests.
function M.dismiss()
  requests.cancel()
  drop("dismissed")
end

--- Remove the suggestion because the user wants none. It counts as neither accepted nor rejected.
function M.silence()
  drop()
end

--- Return whether a suggestion is on the screen.
---@return boolean
function M.is_visible()
  local remainder = offer and offers.remainder(offer, offers.cursor())
  return remainder ~= nil and remainder.text ~= ""
end

local function insert(now, text, replaced_bytes)
  local lines = vim.split(text, "\n", { plain = true })
  vim.api.nvim_buf_set_text(now.bufnr, now.row, now.column, now.row, now.column + replaced_bytes, lines)
  local column = (#lines == 1 and now.column or 0) + #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { now.row + #lines, column })
end

--- Insert the part of the suggestion that a Vim pattern matches. Runs between two undo breaks, see `draftline.accept`.
---@param pattern string
function M.insert(pattern)
  local now = offers.cursor()
  local remainder = offer and offers.remainder(offer, now)
  if not remainder or remainder.text == "" then
    return
  end
  local part = vim.fn.matchstr(remainder.text, pattern)
  if part == remainder.text and offer.is_done then
    local accepted = offer
    drop()
    insert(now, part, #remainder.replaced)
    return signals.accepted(accepted)
  end
  local contained = vim.tbl_filter(function(place)
    return place < #part
  end, remainder.places)
  insert(now, part, #contained)
  offer.is_partly_accepted = true
  local text = offer.items[offer.index].text
  signals.partly_accepted(offer, text:sub(1, #text - #remainder.text + #part))
  show()
end

--- Watch a buffer and request suggestions in it.
---@param bufnr integer
function M.attach(bufnr)
  ghost.define_highlights()
  local group = vim.api.nvim_create_augroup(group_of(bufnr), {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ "TextChangedI", "TextChangedP" }, on_text_changed)
  on({ "CursorMovedI", "CursorMoved" }, on_cursor_moved)
  on("InsertEnter", M.request_automatically)
  on({ "InsertLeave", "BufLeave" }, function() -- which refuses nothing
    requests.cancel()
    drop("cursorMoved")
  end)
  -- Keys that were pressed while the model was loading got no suggestion.
  vim.api.nvim_create_autocmd("User", {
    group = group,
    pattern = "DraftlineStatus",
    callback = function(event)
      local is_here = vim.api.nvim_get_current_buf() == bufnr
      if event.data.kind == "ready" and is_here and is_inserting() and not offer and not requests.is_waiting() then
        M.request_automatically()
      end
    end,
  })
  on("BufWipeout", function()
    vim.api.nvim_del_augroup_by_id(group) -- the autocommand above is not the buffer's
  end)
end

popup.watch(show)

return M
