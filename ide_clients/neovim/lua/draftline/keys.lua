-- Keys that belong to us only while a suggestion is shown: they are mapped with it and given back after it.

local config = require("draftline.config")

local M = {}

local given_back = {} -- buffer -> what the keys were mapped to before in that buffer
local actions = { "accept", "accept_word", "accept_line", "next", "previous", "dismiss" }

--- Take the keys in a buffer.
---@param bufnr integer
function M.take(bufnr)
  if given_back[bufnr] then
    return
  end
  given_back[bufnr] = {}
  for _, action in ipairs(actions) do
    local key = config.options.keys[action]
    if key then
      local before = vim.fn.maparg(key, "i", false, true)
      local is_local = before.buffer == 1
      given_back[bufnr][key] = is_local and before or false
      vim.keymap.set("i", key, function()
        require("draftline")[action]()
      end, { buffer = bufnr, nowait = true, desc = "draftline: " .. action:gsub("_", " ") })
    end
  end
end

--- Give them back.
---@param bufnr integer
function M.give_back(bufnr)
  local before = given_back[bufnr]
  given_back[bufnr] = nil
  if not before or not vim.api.nvim_buf_is_valid(bufnr) then
    return
  end
  for key, mapping in pairs(before) do
    pcall(vim.keymap.del, "i", key, { buffer = bufnr }) -- the user may have unmapped it meanwhile
    if mapping then
      vim.api.nvim_buf_call(bufnr, function()
        vim.fn.mapset("i", false, mapping)
      end)
    end
  end
end

--- Map the key that asks for a suggestion, unless the user has it for something else.
function M.map_request()
  local key = config.options.keys.request
  if key and vim.fn.maparg(key, "i") == "" then
    vim.keymap.set("i", key, "<Plug>(draftline-request)", { desc = "draftline: request" })
  end
end

return M
