-- The source of nvim-cmp: `require("cmp").register_source("draftline", require("draftline.cmp"))`.

local menu = require("draftline.menu")

local M = {}

function M:get_debug_name()
  return "draftline"
end

function M:is_available()
  return menu.is_available()
end

-- Return the unit of columns in `textEdit`.
function M:get_position_encoding_kind()
  local client = require("draftline.server").client(0)
  return client and client.offset_encoding or "utf-16"
end

function M:complete(params, callback)
  menu.request(params.context.option.reason == "manual", function(items)
    callback({ items = items, isIncomplete = true })
  end)
end

function M:execute(item, callback)
  menu.accepted(item)
  callback(item)
end

return M
