-- What the server offers at a place in a buffer, and what of it is left after the user typed on.
-- Everything here is a function of its arguments and of the buffer's text; nothing is drawn or sent.

local M = {}

---@class draftline.Place where a request was made
---@field bufnr integer
---@field row integer 0-based
---@field column integer 0-based, in bytes
---@field head string the line before the cursor
---@field tail string the line after it
---@field closed integer how many bytes of the tail were replaced by parts that were accepted
---@field last_row integer? of a request: the last line that was typed since
---@field is_outdated boolean? of a request: whether other lines changed since

---@class draftline.Item
---@field text string what belongs at the place, lines ended by "\n"
---@field replaced integer how many bytes after the place it replaces
---@field command lsp.Command

---@class draftline.Offer
---@field id string
---@field serial integer number of the request that it answers
---@field place draftline.Place
---@field items draftline.Item[]
---@field index integer the one that is shown
---@field is_done boolean false while text may still grow
---@field is_partly_accepted boolean

---@class draftline.Rest
---@field text string what is left to insert at the cursor
---@field replaced string the text after the cursor that it takes the place of
---@field is_final boolean false while the text may still grow
---@field added integer bytes of `replaced` that were put there since the request

--- The place of the cursor.
---@return draftline.Place
function M.place_of_cursor()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  return {
    bufnr = vim.api.nvim_get_current_buf(),
    row = row - 1,
    column = column,
    head = line:sub(1, column),
    tail = line:sub(column + 1),
    closed = 0,
  }
end

-- An item says what it replaces as a range around the place, on the place's line: the part before it must be what the
-- text starts with, else it is no insertion and cannot be shown.
local function read_item(raw, place, encoding, id, index)
  local text = type(raw.insertText) == "string" and raw.insertText or raw.insertText.value
  text = text:gsub("\r\n?", "\n")
  local replaced = 0
  if raw.range then
    local from, to = raw.range.start, raw.range["end"]
    if from.line ~= place.row or to.line ~= place.row then
      return nil
    end
    local line = place.head .. place.tail
    local before = place.head:sub(vim.str_byteindex(line, encoding, from.character, false) + 1)
    if text:sub(1, #before) ~= before then
      return nil
    end
    text = text:sub(#before + 1)
    replaced = math.max(0, vim.str_byteindex(line, encoding, to.character, false) - place.column)
  end
  local command = raw.command or { title = "", command = "draftline.accepted", arguments = { id, index } }
  return { text = text, replaced = replaced, command = command }
end

--- Read the server's items. Returns nil if none of them can be shown at the place.
---@param raw_items lsp.InlineCompletionItem[]
---@param place draftline.Place
---@param encoding string the client's unit of columns
---@param id string? nil: taken from the first item's command
---@return draftline.Offer?
function M.read(raw_items, place, encoding, id)
  local items = {}
  for index, raw in ipairs(raw_items) do
    items[#items + 1] = read_item(raw, place, encoding, id, index - 1)
  end
  if #items == 0 then
    return nil
  end
  id = id or (items[1].command.arguments or {})[1]
  return { id = id, serial = 0, place = place, items = items, index = 1, is_done = true, is_partly_accepted = false }
end

-- Text between the place and the cursor; nil if the cursor is before it, or the line's start or other lines changed.
local function typed_since(place, now)
  if place.is_outdated then
    return nil
  end
  local line = vim.api.nvim_buf_get_lines(place.bufnr, place.row, place.row + 1, false)[1]
  local is_before = now.row < place.row or (now.row == place.row and now.column < place.column)
  if now.bufnr ~= place.bufnr or not line or is_before or line:sub(1, place.column) ~= place.head then
    return nil
  end
  local lines = vim.api.nvim_buf_get_text(place.bufnr, place.row, place.column, now.row, now.column, {})
  return table.concat(lines, "\n")
end

-- Closers that an auto-pairing editor added after the cursor since the request; nil if the line's end changed otherwise.
local function added_closers(place, now)
  local tail = place.tail:sub(place.closed + 1)
  local added = #now.tail - #tail
  if added < 0 or now.tail:sub(added + 1) ~= tail then
    return nil
  end
  return now.tail:sub(1, added):match("^[%)%]}>\"'`]*$") and added or nil
end

--- What is left of the offered text at the cursor.
---@param offer draftline.Offer
---@param now draftline.Place
---@param index integer? of which item; nil: of the one that is shown
---@return draftline.Rest? rest nil if what was typed is not what is offered
function M.rest(offer, now, index)
  local item = offer.items[index or offer.index]
  local typed = typed_since(offer.place, now)
  local added = typed and added_closers(offer.place, now)
  if not added then
    return nil
  end
  local is_ahead = not offer.is_done and typed:sub(1, #item.text) == item.text
  if item.text:sub(1, #typed) ~= typed and not is_ahead then
    return nil
  end
  local replaced = math.max(0, item.replaced - offer.place.closed)
  return {
    text = item.text:sub(#typed + 1),
    replaced = now.tail:sub(1, added + replaced),
    is_final = offer.is_done,
    added = added,
  }
end

--- The items that go on with what was typed.
---@param offer draftline.Offer
---@param now draftline.Place
---@return integer[] indices
function M.fitting(offer, now)
  local indices = {}
  for index in ipairs(offer.items) do
    local rest = M.rest(offer, now, index)
    if rest and rest.text ~= "" then
      indices[#indices + 1] = index
    end
  end
  return indices
end

--- The next word of a text with the blanks before it; a run of punctuation is a word.
---@param text string
---@return string
function M.first_word(text)
  local word = vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
  return word ~= "" and word or text
end

--- The text up to the end of its first line; a text that begins with a line end gives that and the whole next line.
---@param text string
---@return string
function M.first_line(text)
  return text:match("^\n*[^\n]*")
end

--- How much of `replaced` a part of the text closes itself: its leading characters, found in order.
---@param part string
---@param replaced string
---@return integer bytes
function M.closed_by(part, replaced)
  local from, closed = 1, 0
  for character in vim.gsplit(replaced, "") do
    local found = part:find(character, from, true)
    if not found then
      break
    end
    from, closed = found + #character, closed + #character
  end
  return closed
end

return M
