-- The requests that wait for a reply, and the last one with a reply: alternatives can still arrive for it.
-- A request is outdated once the buffer changed in lines other than those that the user typed since: a suggestion depends
-- on the text around these lines. `draftline.offer` compares the lines themselves.

local M = {}

---@class draftline.Request
---@field origin draftline.Cursor
---@field position lsp.Position the same cursor for the server
---@field version integer of the buffer, as the server knows it
---@field client integer
---@field request integer? the ID of the running LSP request
---@field is_answered boolean?

M.open = {} ---@type table<integer, draftline.Request> by their numbers; newer requests have higher ones
M.newest = 0 -- number of the newest request

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

-- Keep `is_outdated` of a request's origin up to date from now on.
local function follow(origin)
  origin.last_row, origin.is_outdated = origin.row, false
  followed[origin] = true
  if not watched[origin.bufnr] then
    local callbacks = { on_lines = on_lines, on_reload = outdate, on_detach = detach }
    watched[origin.bufnr] = vim.api.nvim_buf_attach(origin.bufnr, false, callbacks)
  end
end

--- Add a request.
---@param one draftline.Request
---@return integer number
function M.add(one)
  follow(one.origin)
  M.newest = M.newest + 1
  M.open[M.newest] = one
  return M.newest
end

--- Return whether streamed text belongs to a request. Text for another version of the buffer does not.
---@param one draftline.Request
---@param params {uri: string, version: integer, position: lsp.Position}
---@return boolean
function M.is_answered_by(one, params)
  return one.version == params.version
    and vim.deep_equal(one.position, params.position)
    and vim.uri_from_bufnr(one.origin.bufnr) == params.uri
end

--- Note that a request has its reply. Nothing more arrives for older requests with a reply.
---@param number integer
function M.note_answer(number)
  M.open[number].request, M.open[number].is_answered = nil, true
  for older, one in pairs(M.open) do
    if older < number and one.is_answered then
      M.open[older] = nil
    end
  end
end

--- Return whether a request waits for its reply.
---@return boolean
function M.is_waiting()
  return vim.iter(vim.tbl_values(M.open)):any(function(one)
    return not one.is_answered
  end)
end

--- Cancel and forget all requests.
function M.cancel()
  for _, one in pairs(M.open) do
    local client = vim.lsp.get_client_by_id(one.client)
    if client and one.request then
      client:cancel_request(one.request)
    end
  end
  M.open = {}
end

return M
