-- Draws a suggestion as virtual text at the cursor; the buffer's text is not touched.

local M = {}

local namespace = vim.api.nvim_create_namespace("draftline.ghost")

--- Define the highlight groups; a colour scheme may define its own.
function M.define_highlights()
  local ghost = vim.fn.hlexists("ComplHint") == 1 and "ComplHint" or "Comment"
  vim.api.nvim_set_hl(0, "DraftlineGhost", { link = ghost, default = true })
  vim.api.nvim_set_hl(0, "DraftlineGhostCount", { link = "Comment", default = true })
end

-- Virtual text shows a tab as one cell.
local function expand_tabs(line, bufnr)
  return (line:gsub("\t", (" "):rep(vim.bo[bufnr].tabstop)))
end

-- Where the pieces of the first line go: the characters that it replaces stay where they are if it contains them in
-- order, and the pieces stand around them. nil if it does not contain them.
local function pieces_around(first_line, replaced)
  local pieces, from, offset = {}, 1, 0
  for _, character in ipairs(vim.fn.split(replaced, "\\zs")) do
    local found = first_line:find(character, from, true)
    if not found then
      return nil
    end
    pieces[#pieces + 1] = { offset = offset, text = first_line:sub(from, found - 1) }
    from, offset = found + #character, offset + #character
  end
  pieces[#pieces + 1] = { offset = offset, text = first_line:sub(from) }
  return pieces
end

local function draw_piece(place, offset, text, position, virtual_lines)
  vim.api.nvim_buf_set_extmark(place.bufnr, namespace, place.row, place.column + offset, {
    virt_text = { { text, "DraftlineGhost" } },
    virt_text_pos = position,
    virt_lines = virtual_lines,
    hl_mode = "replace", -- else a highlighted bracket at the cursor colours the whole suggestion
    undo_restore = false,
  })
end

--- Draw what is left of a suggestion at a place, in place of what stood there.
---@param place draftline.Place
---@param rest draftline.Rest
---@param count string? "2/3" where there are several
function M.draw(place, rest, count)
  M.clear(place.bufnr)
  local lines = vim.split(rest.text, "\n", { plain = true })
  local below = {}
  for i = 2, #lines do
    below[#below + 1] = { { expand_tabs(lines[i], place.bufnr), "DraftlineGhost" } }
  end
  local first = expand_tabs(lines[1], place.bufnr)
  local pieces = pieces_around(first, rest.replaced) or { { offset = 0, text = first } }
  if #pieces == 1 and rest.replaced ~= "" and rest.is_final then
    draw_piece(place, 0, (" "):rep(vim.fn.strdisplaywidth(rest.replaced)), "overlay", nil) -- it will be gone
  end
  for i, piece in ipairs(pieces) do
    local virtual_lines = i == #pieces and #below > 0 and below or nil
    if piece.text ~= "" or virtual_lines then
      draw_piece(place, piece.offset, piece.text, "inline", virtual_lines)
    end
  end
  if count then
    vim.api.nvim_buf_set_extmark(place.bufnr, namespace, place.row, 0, {
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
