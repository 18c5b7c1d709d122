-- The `:Draftline` command and the <Plug> mappings. They load the other modules when they are used.

if vim.g.loaded_draftline then
  return
end
vim.g.loaded_draftline = true

local function switch(state, scope)
  require("draftline.quiet").run("draftline.switch", { scope or "file", vim.uri_from_bufnr(0), state })
end

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
  snooze = function(minutes)
    local number = tonumber(minutes)
    if minutes and not number then
      vim.notify(("draftline: `%s` is not a number of minutes"):format(minutes), vim.log.levels.ERROR)
      return
    end
    require("draftline.quiet").run("draftline.snooze", { number })
  end,
  resume = function()
    require("draftline.quiet").run("draftline.resume", {})
  end,
  get_model = function()
    require("draftline.quiet").run("draftline.getModel", {})
  end,
  off = function(scope)
    switch("off", scope)
  end,
  on = function(scope)
    switch("on", scope)
  end,
  manual = function()
    require("draftline.quiet").set_trigger("manual")
  end,
  automatic = function()
    require("draftline.quiet").set_trigger("automatic")
  end,
  edit = function(_, given)
    local instruction = table.concat(given.fargs, " ", 2)
    local selection = require("draftline.selection")
    if instruction == "" then
      selection.ask(given.line1, given.line2)
    else
      selection.start(given.line1, given.line2, instruction)
    end
  end,
  next_edit = function()
    require("draftline.next_edit").request()
  end,
  log = function()
    vim.cmd.tabedit(vim.lsp.log.get_filename())
  end,
}

vim.api.nvim_create_user_command("Draftline", function(given)
  local name = given.fargs[1] or "status"
  if not commands[name] then
    local known = table.concat(vim.fn.sort(vim.tbl_keys(commands)), ", ")
    vim.notify(("draftline: there is no `:Draftline %s`; use one of %s"):format(name, known), vim.log.levels.ERROR)
    return
  end
  commands[name](given.fargs[2], given)
end, {
  nargs = "*",
  range = true,
  desc = "Inline completion by draftline",
  complete = function(start, line)
    local is_scope = line:match("^%S+%s+o[nf]+%s")
    return vim.fn.sort(vim.tbl_filter(function(name)
      return vim.startswith(name, start)
    end, is_scope and vim.list_slice(require("draftline.quiet").SCOPES) or vim.tbl_keys(commands)))
  end,
})

for _, action in ipairs({ "accept", "accept_word", "accept_line", "next", "previous", "dismiss", "request" }) do
  vim.keymap.set("i", ("<Plug>(draftline-%s)"):format(action:gsub("_", "-")), function()
    require("draftline")[action]()
  end, { desc = "draftline: " .. action:gsub("_", " ") })
end

vim.keymap.set({ "n", "x" }, "<Plug>(draftline-edit)", ":Draftline edit<CR>", {
  desc = "draftline: edit the selected lines by an instruction",
})
