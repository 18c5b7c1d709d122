-- The life of a suggestion in the editor: asked for, drawn as it streams, narrowed by typing, accepted or put away.
-- There is one cursor in insert mode, so there is at most one offer.

local config = require("draftline.config")
local edits = require("draftline.edits")
local ghost = require("draftline.ghost")
local keys = require("draftline.keys")
local offers = require("draftline.offer")
local requests = require("draftline.requests")
local server = require("draftline.server")
local signals = require("draftline.signals")

local M = {}

local AUTOMATIC, INVOKED = 2, 1 -- LSP 3.18, InlineCompletionTriggerKind
local METHOD = "textDocument/inlineCompletion"

local offer = nil ---@type draftline.Offer?
local wants_next = false -- the answer on its way was asked for to show its second suggestion

local function is_inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
end

local function hide()
  signals.hidden()
  if offer then
    ghost.clear(offer.place.bufnr)
    keys.give_back(offer.place.bufnr)
  end
end

--- Put the suggestion away.
---@param reason ("dismissed"|"typedOver"|"cursorMoved")? nil if nobody rejected it
local function drop(reason)
  if offer then
    hide()
    if reason then
      signals.rejected(offer, reason)
    end
    offer = nil
  end
end

local function position_in(list, value)
  for i, one in ipairs(list) do
    if one == value then
      return i
    end
  end
end

local function count_of(one, fitting)
  return #fitting > 1 and ("%d/%d"):format(position_in(fitting, one.index), #fitting) or nil
end

local function is_spent(rest)
  return not rest or (rest.text == "" and rest.is_final)
end

-- Draw what is left of the offer at the cursor, of another item where that goes on with what was typed and the shown
-- one does not. False if what was typed is something else.
local function show()
  local now = offers.place_of_cursor()
  local fitting = offer and offers.fitting(offer, now) or {}
  if fitting[1] and not offer.is_partly_accepted and is_spent(offers.rest(offer, now)) then
    offer.index = fitting[1]
  end
  local rest = offer and offers.rest(offer, now)
  if not rest then
    return false
  end
  local is_covered = config.options.hide_with_popup_menu and vim.fn.pumvisible() == 1
  if rest.text == "" or is_covered or not is_inserting() then
    hide()
  else
    ghost.draw(now, rest, count_of(offer, fitting))
    keys.take(now.bufnr)
    signals.visible(offer)
  end
  return rest.text ~= "" or not offer.is_done
end

-- Nothing is left of an offer whose last text has arrived: it was typed or accepted while it was generated.
local function finish(ended)
  local rest = offers.rest(ended, offers.place_of_cursor())
  drop()
  if rest and ended.is_partly_accepted then
    signals.accepted(ended)
  else
    M.ask_automatically()
  end
end

-- Take over what the server offers for a request, unless something newer is on the screen.
---@param index integer? the suggestion to show; nil: the one that was shown
local function take(new_offer, number, index)
  local before = offer
  if before and number < before.serial then
    return
  end
  new_offer.serial = number
  if before and before.id == new_offer.id then
    new_offer.index = math.min(index or before.index, #new_offer.items)
    new_offer.is_partly_accepted = before.is_partly_accepted
  elseif index then
    new_offer.index = math.min(index, #new_offer.items)
  end
  offer = new_offer
  if show() then
    return
  elseif before and before.serial == number then
    finish(new_offer)
  else
    offer = before
  end
end

local function on_answer(number, err, result)
  local one = requests.get(number)
  if not one or err or not is_inserting() then
    return requests.forget(number)
  end
  requests.note_answer(number)
  local client = vim.lsp.get_client_by_id(one.client)
  local raw_items = result and (result.items or result) or {}
  local new_offer = client and offers.read(raw_items, one.place, client.offset_encoding)
  if new_offer then
    take(new_offer, number, wants_next and number == requests.newest() and 2 or nil)
  elseif number == requests.newest() then
    drop()
  end
end

local function ask(kind)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.client(bufnr)
  if not client or not config.is_enabled or not client:supports_method(METHOD, bufnr) then
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local version = vim.lsp.util.buf_versions[bufnr]
  local one = { place = offers.place_of_cursor(), position = params.position, version = version, client = client.id }
  edits.follow(one.place)
  local number = requests.add(one)
  local is_sent, request = client:request(METHOD, params, function(err, result)
    on_answer(number, err, result)
  end, bufnr)
  one.request = request
  if not is_sent then
    requests.forget(number)
  end
end

--- Ask as typing does: the server waits a moment and may show nothing.
function M.ask_automatically()
  ask(AUTOMATIC)
end

--- Text that is still growing arrived, or others beside the one on the screen.
function M.on_partial(params, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for number = requests.newest(), 1, -1 do
    local one = requests.get(number)
    if not one or not client then
      return -- answered, superseded, or gone
    end
    local is_its = requests.is_answered_by(one, params)
    if is_its and one.is_answered and not (offer and offer.serial == number) then
      return -- accepted or put away
    elseif is_its then
      local new_offer = offers.read(params.items, one.place, client.offset_encoding, params.id)
      if new_offer and is_inserting() then
        new_offer.is_done = params.done
        take(new_offer, number)
      end
      return
    end
  end
end

local function on_text_changed()
  wants_next = false
  if offer and show() then
    return
  end
  drop("typedOver")
  M.ask_automatically()
end

local function on_cursor_moved()
  signals.cursor_moved()
  if offer and not show() then
    drop("cursorMoved")
  end
end

--- Ask for a suggestion now, whatever the server thinks of the place.
function M.request()
  ask(INVOKED)
end

--- Show another suggestion that goes on with what was typed; where there is none, ask for more.
---@param step integer
function M.cycle(step)
  if not offer then
    return
  end
  local fitting = offers.fitting(offer, offers.place_of_cursor())
  local shown = position_in(fitting, offer.index)
  if not shown or #fitting == 1 then
    wants_next = true
    return ask(INVOKED)
  end
  offer.index = fitting[(shown - 1 + step) % #fitting + 1]
  show()
end

--- Put the suggestion away for good.
function M.dismiss()
  requests.cancel()
  drop("dismissed")
end

--- Whether a suggestion stands on the screen.
---@return boolean
function M.is_visible()
  local rest = offer and offers.rest(offer, offers.place_of_cursor())
  return rest ~= nil and rest.text ~= ""
end

local function insert(now, text, replaced_bytes)
  local lines = vim.split(text, "\n", { plain = true })
  vim.api.nvim_buf_set_text(now.bufnr, now.row, now.column, now.row, now.column + replaced_bytes, lines)
  local column = (#lines == 1 and now.column or 0) + #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { now.row + #lines, column })
end

--- Insert the part of the suggestion that `cut` returns. Called between two undo breaks: see `draftline.accept`.
---@param cut fun(text: string): string
function M.insert(cut)
  local now = offers.place_of_cursor()
  local rest = offer and offers.rest(offer, now)
  if not rest or rest.text == "" then
    return
  end
  local part = cut(rest.text)
  if part == rest.text and offer.is_done then
    local accepted = offer
    drop()
    insert(now, part, #rest.replaced)
    return signals.accepted(accepted)
  end
  local closed = offers.closed_by(part, rest.replaced)
  insert(now, part, closed)
  offer.place.closed = offer.place.closed + math.max(0, closed - rest.added)
  offer.is_partly_accepted = true
  local text = offer.items[offer.index].text
  signals.partly_accepted(offer, text:sub(1, #text - #rest.text + #part))
  show()
end

--- Watch a buffer.
---@param bufnr integer
function M.attach(bufnr)
  local group = vim.api.nvim_create_augroup("draftline.buffer." .. bufnr, {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ "TextChangedI", "TextChangedP" }, on_text_changed)
  on({ "CursorMovedI", "CursorMoved" }, on_cursor_moved)
  on("InsertEnter", M.ask_automatically)
  on({ "InsertLeave", "BufLeave" }, M.dismiss)
  on("CompleteDone", function()
    vim.schedule(show)
  end)
  -- Keys that were pressed while the model was being loaded got no answer.
  vim.api.nvim_create_autocmd("User", {
    group = group,
    pattern = "DraftlineStatus",
    callback = function(event)
      local is_here = vim.api.nvim_get_current_buf() == bufnr
      if event.data.kind == "ready" and is_here and is_inserting() and not offer and not requests.is_waiting() then
        M.ask_automatically()
      end
    end,
  })
end

return M
