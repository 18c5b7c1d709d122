-- The suggestions for one request, and what remains of them after the user typed more.
-- The functions read their arguments and the text of the buffer. They neither draw nor send anything.

local M = {}

---@class draftline.Cursor a cursor and the text around it
---@field bufnr integer
---@field row integer 0-based
---@field column integer 0-based, in bytes
---@field head string the line before the cursor
---@field tail string the line after it
---@field last_row integer? for a request: the last line that the user has typed since
---@field is_outdated boolean? for a request: whether other lines have changed since

--- A character that may stand after the cursor once `from` bytes of a text are typed, and the offset `to` of the same one
--- in the text. From 0 on: the text replaces it. Without `to`: the text does not have it, and it stays.
---@class draftline.Closer
---@field character string
---@field from integer
---@field to integer?

---@class draftline.Item
---@field text string the text to insert at the cursor, lines separated by "\n"
---@field replaced integer bytes after the cursor that it replaces
---@field closers draftline.Closer[] in the order in which they stand after the cursor
---@field command lsp.Command

---@class draftline.Offer
---@field id string
---@field serial integer number of its request
---@field origin draftline.Cursor where the request was made
---@field items draftline.Item[]
---@field index integer the item on the screen
---@field is_done boolean false while the items can still grow
---@field is_partly_accepted boolean

---@class draftline.Remainder
---@field text string the text that remains to insert at the cursor
---@field replaced string the text after the cursor that it replaces
---@field places integer[] offset in the text of each byte of `replaced`
---@field is_final boolean false while the text can still grow

--- Return the cursor of the current window.
---@return draftline.Cursor
function M.cursor()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  return {
    bufnr = vim.api.nvim_get_current_buf(),
    row = row - 1,
    column = column,
    head = line:sub(1, column),
    tail = line:sub(column + 1),
  }
end

-- Return an item of the server, with offsets in bytes.
local function read_item(raw, origin, encoding)
  local text = raw.insertText:gsub("\r\n?", "\n")
  local line = origin.head .. origin.tail
  local function bytes_of(offset)
    return offset and vim.str_byteindex(text, encoding, offset, false)
  end
  local closers = vim.tbl_map(function(one)
    return { character = one.character, from = bytes_of(one.from), to = bytes_of(one.to) }
  end, raw.closers)
  local replaced = vim.str_byteindex(line, encoding, raw.range["end"].character, false) - origin.column
  return { text = text, replaced = replaced, closers = closers, command = raw.command }
end

--- Read the server's items. Return nil if there are none.
---@param raw_items table[]
---@param origin draftline.Cursor where the request was made
---@param encoding string the client's position encoding
---@return draftline.Offer?
function M.read(raw_items, origin, encoding)
  if #raw_items == 0 then
    return nil
  end
  local items = vim.tbl_map(function(raw)
    return read_item(raw, origin, encoding)
  end, raw_items)
  local id = items[1].command.arguments[1]
  return { id = id, serial = 0, origin = origin, items = items, index = 1, is_done = true, is_partly_accepted = false }
end

-- Return the text between the origin and the cursor. Return nil if the cursor is before the origin, or if the text
-- before the origin on its line or other lines changed: a closer may be on a line of its own now.
local function typed_since(origin, now)
  if origin.is_outdated or now.row ~= (origin.last_row or now.row) then
    return nil
  end
  local line = vim.api.nvim_buf_get_lines(origin.bufnr, origin.row, origin.row + 1, false)[1]
  local is_before = now.row < origin.row or (now.row == origin.row and now.column < origin.column)
  if now.bufnr ~= origin.bufnr or not line or is_before or line:sub(1, origin.column) ~= origin.head then
    return nil
  end
  local lines = vim.api.nvim_buf_get_text(origin.bufnr, origin.row, origin.column, now.row, now.column, {})
  return table.concat(lines, "\n")
end

-- Return the offsets in a text of the characters after the cursor that it contains itself after its first `typed` bytes.
-- `standing` is what stands there before the text that the item keeps. Return nil if it is neither what stood there nor
-- closers.
local function places_in(item, typed, standing)
  local places = {}
  for index = #item.closers, 1, -1 do
    local closer = item.closers[index]
    local stood_there = closer.from == 0 -- until it is typed over, which some editors do not do
    local is_open = not closer.to or typed <= closer.to
    if vim.endswith(standing, closer.character) and closer.from <= typed and (stood_there or is_open) then
      standing = standing:sub(1, -#closer.character - 1)
      for byte = closer.to and #closer.character or 0, 1, -1 do
        table.insert(places, 1, closer.to + byte - 1)
      end
    elseif stood_there and is_open then
      return nil
    end
  end
  return standing == "" and places or nil
end

--- Return what remains of an item at the cursor.
---@param offer draftline.Offer
---@param now draftline.Cursor
---@param index integer? of which item; nil: of the item on the screen
---@return draftline.Remainder? remainder nil if the user typed something else
function M.remainder(offer, now, index)
  local item = offer.items[index or offer.index]
  local typed = typed_since(offer.origin, now)
  local kept = offer.origin.tail:sub(item.replaced + 1)
  if not typed or not vim.endswith(now.tail, kept) then
    return nil
  end
  local is_ahead = not offer.is_done and vim.startswith(typed, item.text) -- of a text that grows
  if not is_ahead and not vim.startswith(item.text, typed) then
    return nil
  end
  local places = is_ahead and {} or places_in(item, #typed, now.tail:sub(1, #now.tail - #kept))
  return places and {
    text = item.text:sub(#typed + 1),
    replaced = now.tail:sub(1, #places),
    places = vim.tbl_map(function(place)
      return place - #typed
    end, places),
    is_final = offer.is_done,
  }
end

--- Return the items that continue what the user typed.
---@param offer draftline.Offer
---@param now draftline.Cursor
---@return integer[] indices
function M.fitting(offer, now)
  local indices = {}
  for index in ipairs(offer.items) do
    local remainder = M.remainder(offer, now, index)
    if remainder and remainder.text ~= "" then
      indices[#indices + 1] = index
    end
  end
  return indices
end

return M
