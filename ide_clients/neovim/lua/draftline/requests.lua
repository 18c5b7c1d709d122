-- The questions to the server: those on their way, and the last one that was answered, which others may still follow.

local M = {}

---@class draftline.Request
---@field place draftline.Place where it was asked
---@field position lsp.Position the same as the server knows it
---@field version integer the buffer's, as the server knows it
---@field client integer
---@field request integer? its id while it is on its way
---@field is_answered boolean?

local asked = {} ---@type table<integer, draftline.Request>
local serial = 0 -- number of the newest

--- Take a question in.
---@param one draftline.Request
---@return integer number the newest has the highest
function M.add(one)
  serial = serial + 1
  asked[serial] = one
  return serial
end

---@param number integer
---@return draftline.Request?
function M.get(number)
  return asked[number]
end

---@return integer
function M.newest()
  return serial
end

---@param number integer
function M.forget(number)
  asked[number] = nil
end

--- Whether streamed text belongs to a question; text for another version of the buffer does not.
---@param one draftline.Request
---@param params {uri: string, version: integer, position: lsp.Position}
---@return boolean
function M.is_answered_by(one, params)
  return one.version == params.version
    and vim.deep_equal(one.position, params.position)
    and vim.uri_from_bufnr(one.place.bufnr) == params.uri
end

--- Note that a question has its answer: nothing follows older answers any more.
---@param number integer
function M.note_answer(number)
  asked[number].request, asked[number].is_answered = nil, true
  for older, one in pairs(asked) do
    if older < number and one.is_answered then
      asked[older] = nil
    end
  end
end

--- Whether an answer is still to come.
---@return boolean
function M.is_waiting()
  return vim.iter(vim.tbl_values(asked)):any(function(one)
    return not one.is_answered
  end)
end

--- Withdraw them all.
function M.cancel()
  for _, one in pairs(asked) do
    local client = vim.lsp.get_client_by_id(one.client)
    if client and one.request then
      client:cancel_request(one.request)
    end
  end
  asked = {}
end

return M
