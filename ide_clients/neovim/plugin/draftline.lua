-- The `:Draftline` command and the <Plug> mappings. They load the other modules when they are used.

if vim.g.loaded_draftline then
  return
end
vim.g.loaded_draftline = true

local commands = {
  enable = function()
    require("draftline").toggle(true)
  end,
  disable = function()
    require("draftline").toggle(false)
  end,
  toggle = function()
    require("draftline").toggle()
  end,
  restart = function()
    require("draftline").restart()
  end,
  status = function()
    print(require("draftline.status").sentence())
  end,
  log = function()
    vim.cmd.tabedit(vim.lsp.log.get_filename())
  end,
}

vim.api.nvim_create_user_command("Draftline", function(given)
  local name = given.args == "" and "status" or given.args
  if not commands[name] then
    local known = table.concat(vim.fn.sort(vim.tbl_keys(commands)), ", ")
    vim.notify(("draftline: there is no `:Draftline %s`; use one of %s"):format(name, known), vim.log.levels.ERROR)
    return
  end
  commands[name]()
end, {
  nargs = "?",
  desc = "Inline completion by draftline",
  complete = function(start)
    return vim.fn.sort(vim.tbl_filter(function(name)
      return vim.startswith(name, start)
    end, vim.tbl_keys(commands)))
  end,
})

for _, action in ipairs({ "accept", "accept_word", "accept_line", "next", "previous", "dismiss", "request" }) do
  vim.keymap.set("i", ("<Plug>(draftline-%s)"):format(action:gsub("_", "-")), function()
    require("draftline")[action]()
  end, { desc = "draftline: " .. action:gsub("_", " ") })
end
