-- Which requests are outdated: those whose buffer changed in other lines than the ones typed since they were made.
-- A suggestion is made for the text around those lines; `draftline.offer` compares the lines themselves.

local M = {}

local followed = setmetatable({}, { __mode = "k" }) ---@type table<draftline.Place, true> forgotten with their requests
local watched = {} -- buffer -> whether its changes are noted

local function on_lines(_, bufnr, _, first, last, new_last)
  for place in pairs(followed) do
    if place.bufnr == bufnr then
      local is_elsewhere = first < place.row or last > place.last_row + 1
      place.is_outdated = place.is_outdated or is_elsewhere
      place.last_row = place.last_row + new_last - last
    end
  end
end

local function outdate(_, bufnr)
  for place in pairs(followed) do
    place.is_outdated = place.is_outdated or place.bufnr == bufnr
  end
end

local function detach(_, bufnr)
  watched[bufnr] = nil
  outdate(nil, bufnr)
end

--- Note from now on whether a request's place is outdated.
---@param place draftline.Place
function M.follow(place)
  place.last_row, place.is_outdated = place.row, false
  followed[place] = true
  if not watched[place.bufnr] then
    local callbacks = { on_lines = on_lines, on_reload = outdate, on_detach = detach }
    watched[place.bufnr] = vim.api.nvim_buf_attach(place.bufnr, false, callbacks)
  end
end

return M
