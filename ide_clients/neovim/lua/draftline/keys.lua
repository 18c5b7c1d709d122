-- Keys that are mapped only while a suggestion is on the screen. Afterwards the user's mappings are restored.

local config = require("draftline.config")

local M = {}

local actions = { "accept", "accept_word", "accept_line", "next", "previous", "dismiss" }
local restores = {} ---@type table<integer, fun()> buffer -> gives its keys back

-- Map keys in a buffer. Return a function that restores its earlier mappings.
local function take(mode, bufnr, wanted)
  local previous = {} ---@type table<string, table|false> key -> its earlier mapping in this buffer
  for key, action in pairs(wanted) do
    local before = vim.fn.maparg(key, mode, false, true)
    previous[key] = before.buffer == 1 and before or false
    vim.keymap.set(mode, key, action, { buffer = bufnr, nowait = true, desc = "draftline" })
  end
  return function()
    if not vim.api.nvim_buf_is_valid(bufnr) then
      return
    end
    for key, mapping in pairs(previous) do
      pcall(vim.keymap.del, mode, key, { buffer = bufnr }) -- the user may have unmapped it
      if mapping then
        vim.api.nvim_buf_call(bufnr, function()
          vim.fn.mapset(mode, false, mapping)
        end)
      end
    end
  end
end

--- Map the keys of an edit in normal mode. Return a function that restores the earlier mappings.
---@param bufnr integer
---@param accept fun()
---@param refuse fun()
---@param given { accept: string|false, refuse: string|false }
---@return fun()
function M.take_for_edit(bufnr, accept, refuse, given)
  local wanted = {}
  for key, action in pairs({ [given.accept or 1] = accept, [given.refuse or 2] = refuse }) do
    if type(key) == "string" then
      wanted[key] = action
    end
  end
  return take("n", bufnr, wanted)
end

--- Map the keys of a suggestion in a buffer.
---@param bufnr integer
function M.map(bufnr)
  if restores[bufnr] then
    return
  end
  local wanted = {}
  for _, action in ipairs(actions) do
    local key = config.options.keys[action]
    if key then
      wanted[key] = function()
        if require("draftline")[action]() == false then -- the keys came before Neovim told that the text has changed
          M.restore(bufnr)
          vim.api.nvim_feedkeys(vim.keycode(key), "mi", false)
        end
      end
    end
  end
  restores[bufnr] = take("i", bufnr, wanted)
end

--- Restore the earlier mappings of a buffer.
---@param bufnr integer
function M.restore(bufnr)
  local restore = restores[bufnr]
  restores[bufnr] = nil
  if restore then
    restore()
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
