-- The source of blink.cmp: `providers = { draftline = { name = "draftline", module = "draftline.blink", async = true } }`.

local menu = require("draftline.menu")

local M = {}

function M.new()
  return setmetatable({}, { __index = M })
end

function M:enabled()
  return menu.is_available()
end

function M:get_completions(context, callback)
  return menu.request(context.trigger.initial_kind == "manual", function(items)
    callback({ items = items, is_incomplete_forward = true, is_incomplete_backward = true })
  end)
end

function M:execute(_, item, callback, insert)
  insert()
  menu.accepted(item)
  callback()
end

return M
