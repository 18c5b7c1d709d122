-- The completion menu: Neovim's own, or that of blink.cmp or nvim-cmp, which Neovim does not know as a menu.

local M = {}

local on_change = function() end
local is_cmp_watched = false

local function blink_is_open()
  local blink = package.loaded["blink.cmp"]
  return blink ~= nil and blink.is_menu_visible ~= nil and blink.is_menu_visible()
end

-- nvim-cmp tells only those that ask it, and may be loaded late.
local function cmp_is_open()
  local cmp = package.loaded["cmp"]
  if not cmp or not cmp.visible then
    return false
  end
  if not is_cmp_watched then
    is_cmp_watched = true
    cmp.event:on("menu_opened", on_change)
    cmp.event:on("menu_closed", on_change)
  end
  return cmp.visible()
end

--- Return whether a completion menu is on the screen.
---@return boolean
function M.is_open()
  return vim.fn.pumvisible() == 1 or blink_is_open() or cmp_is_open()
end

--- Call a function after a completion menu has opened or closed.
---@param callback fun()
function M.watch(callback)
  on_change = vim.schedule_wrap(callback)
  local group = vim.api.nvim_create_augroup("draftline.popup", {})
  vim.api.nvim_create_autocmd({ "CompleteChanged", "CompleteDone" }, { group = group, callback = on_change })
  local pattern = { "BlinkCmpMenuOpen", "BlinkCmpMenuClose" }
  vim.api.nvim_create_autocmd("User", { group = group, pattern = pattern, callback = on_change })
end

return M
