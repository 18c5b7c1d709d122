-- Neovim 0.12's own inline completion, used after `vim.lsp.enable("draftline")` without `setup()`.

local config = require("draftline.config")

local M = {}

local EARLIER, DONE = "<Plug>(draftline-earlier-tab)", "<Plug>(draftline-earlier-tab-done)"
local is_earlier = false -- the earlier mapping of Tab is running

-- Return an item whose range covers the text that the user typed since, and the line's end if the server was asked for
-- items up to there. Neovim keeps a suggestion on the screen while the user types, and accepting it would insert the
-- typed characters twice. Return nil if the user typed something else.
local function cover_typed_text(item)
  local range, bufnr = item.range, vim.api.nvim_get_current_buf()
  if not range or type(item.insert_text) ~= "string" then
    return item
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local is_read, typed = pcall(vim.api.nvim_buf_get_text, bufnr, range.start_row, range.start_col, row - 1, column, {})
  if not is_read or not vim.startswith(item.insert_text, table.concat(typed, "\n")) then
    return nil
  end
  local client = vim.lsp.get_client_by_id(item.client_id) -- perhaps of another server, which is asked for no such items
  local is_line = vim.tbl_get(client, "config", "init_options", "itemRange") == "line"
  local last = row - 1 == range.end_row and range.end_col or 0
  local stop = is_line and #vim.api.nvim_get_current_line() or math.max(last, column)
  item.range = vim.range(bufnr, range.start_row, range.start_col, row - 1, stop)
  return item
end

-- Save what Tab means in a buffer under a private key, which runs it as Neovim would.
local function save_tab()
  local before = vim.fn.maparg("<Tab>", "i", false, true)
  if vim.tbl_isempty(before) then
    return vim.keymap.set("i", EARLIER, "<Tab>", { buffer = true })
  end
  before.lhs, before.lhsraw, before.lhsrawalt, before.buffer = EARLIER, vim.keycode(EARLIER), nil, 1
  vim.fn.mapset("i", false, before)
end

-- Accept the suggestion; without one, run what Tab meant earlier. If that is a recursive mapping and presses Tab itself,
-- this is a plain Tab.
local function press_tab()
  if is_earlier then
    is_earlier = false
    return "<Tab>"
  elseif vim.lsp.inline_completion.get({ on_accept = cover_typed_text }) then
    return ""
  end
  is_earlier = true
  return EARLIER .. DONE
end

-- Show or hide a client's suggestions in a buffer. Neovim hides only those for which the buffer is enabled as well.
local function show(client, bufnr)
  if config.is_enabled then
    vim.lsp.inline_completion.enable(true, { client_id = client.id, bufnr = bufnr })
    vim.lsp.inline_completion.enable(true, { bufnr = bufnr })
  else
    vim.lsp.inline_completion.enable(false, { client_id = client.id })
  end
end

--- Show or hide the suggestions in all buffers, after draftline was switched on or off.
function M.toggle()
  for _, client in ipairs(vim.lsp.get_clients({ name = "draftline" })) do
    for bufnr in pairs(client.attached_buffers) do
      show(client, bufnr)
    end
  end
end

--- Show suggestions and map Tab to accept them. Without a suggestion Tab keeps its earlier mapping.
---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  show(client, bufnr)
  vim.api.nvim_buf_call(bufnr, function()
    if vim.fn.maparg("<Tab>", "i", false, true).callback ~= press_tab then -- the server may have been restarted
      save_tab()
      vim.keymap.set({ "", "!", "t" }, DONE, function()
        is_earlier = false
      end)
      vim.keymap.set("i", "<Tab>", press_tab, { buffer = true, expr = true, remap = true, desc = "Accept the suggestion" })
    end
  end)
end

return M
