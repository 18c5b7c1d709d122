-- Neovim 0.12's own inline completion, used after `vim.lsp.enable("draftline")` without `setup()`.

local M = {}

-- Return an item whose range covers the text that the user typed since. Neovim keeps a suggestion on the screen while
-- the user types, and accepting it would insert the typed characters twice. Return nil if the user typed something
-- else.
local function cover_typed_text(item)
  local range = item.range
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  if not range or range.end_row ~= row - 1 or range.end_col >= column then
    return item
  end
  local typed = vim.api.nvim_get_current_line():sub(range.start_col + 1, column)
  if type(item.insert_text) ~= "string" or not vim.startswith(item.insert_text, typed) then
    return nil
  end
  local bufnr = vim.api.nvim_get_current_buf()
  item.range = vim.range(bufnr, range.start_row, range.start_col, row - 1, column)
  return item
end

--- Show suggestions and map Tab to accept them. Without a suggestion Tab keeps its earlier mapping.
---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  vim.lsp.inline_completion.enable(true, { client_id = client.id })
  local before = vim.fn.maparg("<Tab>", "i", false, true)
  vim.keymap.set("i", "<Tab>", function()
    if vim.lsp.inline_completion.get({ on_accept = cover_typed_text }) then
      return ""
    elseif before.callback and before.expr == 1 then
      return before.callback()
    elseif before.callback then
      vim.schedule(before.callback)
      return ""
    end
    return before.rhs and before.rhs ~= "" and before.rhs or "<Tab>"
  end, { buffer = bufnr, expr = true, desc = "Accept the suggestion" })
end

return M
