-- Finds outdated requests: the buffer changed in lines other than those that the user typed since the request.
-- A suggestion depends on the text around these lines. `draftline.offer` compares the lines themselves.

local M = {}

local followed = setmetatable({}, { __mode = "k" }) ---@type table<draftline.Cursor, true> forgotten with their requests
local watched = {} -- buffer -> whether its changes are watched

local function on_lines(_, bufnr, _, first, last, new_last)
  for origin in pairs(followed) do
    if origin.bufnr == bufnr then
      local is_elsewhere = first < origin.row or last > origin.last_row + 1
      origin.is_outdated = origin.is_outdated or is_elsewhere
      origin.last_row = origin.last_row + new_last - last
    end
  end
end

local function outdate(_, bufnr)
  for origin in pairs(followed) do
    origin.is_outdated = origin.is_outdated or origin.bufnr == bufnr
  end
end

local function detach(_, bufnr)
  watched[bufnr] = nil
  outdate(nil, bufnr)
end

--- Keep `is_outdated` of a request's origin up to date from now on.
---@param origin draftline.Cursor
function M.follow(origin)
  origin.last_row, origin.is_outdated = origin.row, false
  followed[origin] = true
  if not watched[origin.bufnr] then
    local callbacks = { on_lines = on_lines, on_reload = outdate, on_detach = detach }
    watched[origin.bufnr] = vim.api.nvim_buf_attach(origin.bufnr, false, callbacks)
  end
end

return M
