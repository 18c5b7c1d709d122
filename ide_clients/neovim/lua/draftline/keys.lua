-- Keys that are mapped only while a suggestion is on the screen. Afterwards the user's mappings are restored.

local config = require("draftline.config")

local M = {}

local previous = {} -- buffer -> key -> its earlier mapping in this buffer, or false
local actions = { "accept", "accept_word", "accept_line", "next", "previous", "dismiss" }

--- Map the keys in a buffer.
---@param bufnr integer
function M.map(bufnr)
  if previous[bufnr] then
    return
  end
  previous[bufnr] = {}
  for _, action in ipairs(actions) do
    local key = config.options.keys[action]
    if key then
      local before = vim.fn.maparg(key, "i", false, true)
      local is_local = before.buffer == 1
      previous[bufnr][key] = is_local and before or false
      vim.keymap.set("i", key, function()
        require("draftline")[action]()
      end, { buffer = bufnr, nowait = true, desc = "draftline: " .. action:gsub("_", " ") })
    end
  end
end

--- Restore the earlier mappings of a buffer.
---@param bufnr integer
function M.restore(bufnr)
  local before = previous[bufnr]
  previous[bufnr] = nil
  if not before or not vim.api.nvim_buf_is_valid(bufnr) then
    return
  end
  for key, mapping in pairs(before) do
    pcall(vim.keymap.del, "i", key, { buffer = bufnr }) -- the user may have unmapped it
    if mapping then
      vim.api.nvim_buf_call(bufnr, function()
        vim.fn.mapset("i", false, mapping)
      end)
    end
  end
end

--- Map the key for manual requests, unless the user has mapped it.
function M.map_request()
  local key = config.options.keys.request
  if key and vim.fn.maparg(key, "i") == "" then
    vim.keymap.set("i", key, "<Plug>(draftline-request)", { desc = "draftline: request" })
  end
end

return M
