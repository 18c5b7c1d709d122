-- The suggestions for one request, and what remains of them after the user typed more.
-- The functions read their arguments and the text of the buffer. They neither draw nor send anything.

local M = {}

local MAX_CLOSERS = 3 -- that the user types over while others are added
local OPENERS = { [")"] = "(", ["]"] = "[", ["}"] = "{" }

---@class draftline.Cursor a cursor and the text around it
---@field bufnr integer
---@field row integer 0-based
---@field column integer 0-based, in bytes
---@field head string the line before the cursor
---@field tail string the line after it
---@field closed integer bytes of the tail that accepted parts have replaced
---@field last_row integer? for a request: the last line that the user has typed since
---@field is_outdated boolean? for a request: whether other lines have changed since

---@class draftline.Item
---@field text string the text to insert at the cursor, lines separated by "\n"
---@field replaced integer bytes after the cursor that it replaces
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
---@field is_final boolean false while the text can still grow
---@field added integer bytes of `replaced` that were added since the request

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
    closed = 0,
  }
end

-- Return an item of the server, or nil if it cannot be shown. The range that it replaces must lie on the cursor's line,
-- and its text must start with the part of the range before the cursor: only then does it insert text.
local function read_item(raw, origin, encoding, id, index)
  local text = type(raw.insertText) == "string" and raw.insertText or raw.insertText.value
  text = text:gsub("\r\n?", "\n")
  local replaced = 0
  if raw.range then
    local from, to = raw.range.start, raw.range["end"]
    if from.line ~= origin.row or to.line ~= origin.row then
      return nil
    end
    local line = origin.head .. origin.tail
    local before = origin.head:sub(vim.str_byteindex(line, encoding, from.character, false) + 1)
    if text:sub(1, #before) ~= before then
      return nil
    end
    text = text:sub(#before + 1)
    replaced = math.max(0, vim.str_byteindex(line, encoding, to.character, false) - origin.column)
  end
  local command = raw.command or { title = "", command = "draftline.accepted", arguments = { id, index } }
  return { text = text, replaced = replaced, command = command }
end

--- Read the server's items. Return nil if none of them can be shown.
---@param raw_items lsp.InlineCompletionItem[]
---@param origin draftline.Cursor where the request was made
---@param encoding string the client's position encoding
---@param id string? nil: the ID in the first item's command
---@return draftline.Offer?
function M.read(raw_items, origin, encoding, id)
  local items = {}
  for index, raw in ipairs(raw_items) do
    items[#items + 1] = read_item(raw, origin, encoding, id, index - 1)
  end
  if #items == 0 then
    return nil
  end
  id = id or (items[1].command.arguments or {})[1]
  return { id = id, serial = 0, origin = origin, items = items, index = 1, is_done = true, is_partly_accepted = false }
end

-- Return the text between the origin and the cursor. Return nil if the cursor is before the origin, or if the text
-- before the origin on its line or other lines changed.
local function typed_since(origin, now)
  if origin.is_outdated then
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

-- Return how often a text has a character.
local function count(text, character)
  return select(2, text:gsub(vim.pesc(character), ""))
end

-- Return where a text has a closer that it does not open itself. Each quote counts that is not escaped: it can end a string
-- from before the text.
local function unopened(text, wanted)
  local found, opener, open = {}, OPENERS[wanted], 0
  if wanted:match("[\"'`]") then
    text = text:gsub("\\.", "  ")
  end
  for at = 1, #text do
    local character = text:sub(at, at)
    if character == opener then
      open = open + 1
    elseif character == wanted and open > 0 then
      open = open - 1
    elseif character == wanted then
      found[#found + 1] = at
    end
  end
  return found
end

--- Return how many leading bytes of `replaced` the first part of a text stands for. The text after the cursor closes what
--- was opened first, so it stands for the last ones of the closers that the text does not open itself. Of an odd number of
--- quotes the first one ends a string from before the text.
---@param text string
---@param part string its first part
---@param replaced string the text after the cursor that the whole text replaces
---@return integer bytes
function M.closed_by(text, part, replaced)
  local closers, closed = {}, 0 ---@type table<string, integer[]>, integer
  for character in replaced:gmatch(".") do
    if not closers[character] then
      local found = unopened(text, character)
      if character:match("[\"'`]") then
        closers[character] = { #found % 2 == 1 and found[1] or nil }
      else
        closers[character] = vim.list_slice(found, math.max(1, #found - count(replaced, character) + 1))
      end
    end
    local at = table.remove(closers[character], 1)
    if not at or at > #part then
      break
    end
    closed = closed + 1
  end
  return closed
end

-- Return whether a typed text has all of some closers, each of which it does not open itself.
local function closes(typed, closers)
  for character in closers:gmatch(".") do
    if #unopened(typed, character) < count(closers, character) then
      return false
    end
  end
  return true
end

-- Return how many closing brackets and quotes the user typed over since the request, and how many auto-pairing added after
-- the cursor. Both changed where a string was closed and a call opened: `"|")` becomes `", (|))`. Return nil if the text
-- after the cursor changed in another way.
local function closer_changes(origin, now, typed)
  local tail = origin.tail:sub(origin.closed + 1)
  local fewest = math.max(0, #tail - #now.tail)
  for over = fewest, math.max(fewest, MAX_CLOSERS) do
    local added = #now.tail - #tail + over
    local before, after = tail:sub(1, over), now.tail:sub(1, added)
    local is_same = tail:sub(over + 1) == now.tail:sub(added + 1) and (before .. after):match("^[%)%]}>\"'`]*$")
    if is_same and closes(typed, before) then
      return over, added
    end
  end
end

--- Return what remains of an item at the cursor.
---@param offer draftline.Offer
---@param now draftline.Cursor
---@param index integer? of which item; nil: of the item on the screen
---@return draftline.Remainder? remainder nil if the user typed something else
function M.remainder(offer, now, index)
  local item = offer.items[index or offer.index]
  local typed = typed_since(offer.origin, now)
  if not typed then
    return nil
  end
  local over, added = closer_changes(offer.origin, now, typed)
  local replaced = over and math.max(0, item.replaced - offer.origin.closed) - over + added
  if not over or replaced < 0 then
    return nil
  end
  local is_ahead = not offer.is_done and typed:sub(1, #item.text) == item.text
  if item.text:sub(1, #typed) ~= typed and not is_ahead then
    return nil
  end
  local text = item.text:sub(#typed + 1)
  local own = M.closed_by(text, text, now.tail:sub(1, added))
  if own < added then -- the text is the start of what the server has; a closer that it does not contain stays
    added, replaced = own, own
  end
  return {
    text = text,
    replaced = now.tail:sub(1, replaced),
    is_final = offer.is_done,
    added = added,
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

--- Return the first word of a text with the blanks before it. A run of punctuation is a word.
---@param text string
---@return string
function M.first_word(text)
  local word = vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
  return word ~= "" and word or text
end

--- Return a text up to the end of its first line. A text that begins with a line end includes the whole next line.
---@param text string
---@return string
function M.first_line(text)
  return text:match("^\n*[^\n]*")
end

return M
