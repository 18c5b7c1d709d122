-- Draws a suggestion as virtual text at the cursor. The text of the buffer does not change.

local M = {}

local namespace = vim.api.nvim_create_namespace("draftline.ghost")

--- Define the highlight groups, unless the colour scheme defines them.
function M.define_highlights()
  local ghost = vim.fn.hlexists("ComplHint") == 1 and "ComplHint" or "Comment"
  vim.api.nvim_set_hl(0, "DraftlineGhost", { link = ghost, default = true })
  vim.api.nvim_set_hl(0, "DraftlineGhostCount", { link = "Comment", default = true })
end

--- Return a line with spaces for tabs: virtual text shows a tab as one cell.
---@param line string
---@param bufnr integer
---@return string
function M.expand_tabs(line, bufnr)
  return (line:gsub("\t", (" "):rep(vim.bo[bufnr].tabstop)))
end

-- Return the pieces of the first line between the bytes that it replaces, with their offsets after the cursor. These
-- bytes stay where they are if the line contains them. Return nil if it does not.
local function pieces_around(first_line, places)
  local pieces, from = {}, 0
  for index, place in ipairs(places) do
    if place < from or place >= #first_line then
      return nil
    end
    pieces[index] = { offset = index - 1, text = first_line:sub(from + 1, place) }
    from = place + 1
  end
  pieces[#pieces + 1] = { offset = #places, text = first_line:sub(from + 1) }
  return pieces
end

local function draw_piece(cursor, offset, text, position, virtual_lines)
  vim.api.nvim_buf_set_extmark(cursor.bufnr, namespace, cursor.row, cursor.column + offset, {
    virt_text = { { text, "DraftlineGhost" } },
    virt_text_pos = position,
    virt_lines = virtual_lines,
    hl_mode = "replace", -- otherwise a highlighted bracket at the cursor colours the whole suggestion
    undo_restore = false,
  })
end

--- Draw the remainder of a suggestion at the cursor, instead of what was drawn before.
---@param cursor draftline.Cursor
---@param remainder draftline.Remainder
---@param count string? "2/3" if there are alternatives
function M.draw(cursor, remainder, count)
  M.clear(cursor.bufnr)
  local lines = vim.split(remainder.text, "\n", { plain = true })
  local below = {}
  for i = 2, #lines do
    below[#below + 1] = { { M.expand_tabs(lines[i], cursor.bufnr), "DraftlineGhost" } }
  end
  local pieces = pieces_around(lines[1], remainder.places) or { { offset = 0, text = lines[1] } }
  if #pieces == 1 and remainder.replaced ~= "" and remainder.is_final then
    draw_piece(cursor, 0, (" "):rep(vim.fn.strdisplaywidth(remainder.replaced)), "overlay", nil) -- accepting removes it
  end
  for i, piece in ipairs(pieces) do
    local virtual_lines = i == #pieces and #below > 0 and below or nil
    if piece.text ~= "" or virtual_lines then
      draw_piece(cursor, piece.offset, M.expand_tabs(piece.text, cursor.bufnr), "inline", virtual_lines)
    end
  end
  if count then
    vim.api.nvim_buf_set_extmark(cursor.bufnr, namespace, cursor.row, 0, {
      virt_text = { { count, "DraftlineGhostCount" } },
      virt_text_pos = "right_align",
    })
  end
end

--- Remove everything drawn in a buffer.
---@param bufnr integer
function M.clear(bufnr)
  if vim.api.nvim_buf_is_valid(bufnr) then
    vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

return M
