-- The front door: what your configuration calls. Everything works without a call of `setup`.

local M = {}

local function uses_builtin()
  return require('treefill.config').uses_builtin()
end

--- Sets options; see |treefill-options|. Those that are not named keep their values.
function M.setup(options)
  require('treefill.config').set(options)
end

--- What the server says of itself: `{ kind = 'Normal'|'Warning'|'Error'|'Inactive', busy = boolean, message = string }`.
function M.status()
  return require('treefill.client').status()
end

--- True while ghost text is on screen.
function M.is_visible()
  return require('treefill.session').is_visible()
end

--- Takes the whole ghost text. As all functions here that act on it: false where there is none.
function M.accept()
  if uses_builtin() then
    return vim.lsp.inline_completion.get()
  end
  return require('treefill.session').accept()
end

--- Takes the ghost text's next word.
function M.accept_word()
  return require('treefill.session').accept_word()
end

--- Takes the ghost text's next line.
function M.accept_line()
  return require('treefill.session').accept_line()
end

--- Removes the ghost text; nothing is asked for until the next edit.
function M.dismiss()
  return require('treefill.session').dismiss()
end

--- Shows the next of several suggestions; asks for more where there is one.
function M.next()
  if uses_builtin() then
    vim.lsp.inline_completion.select({ count = 1 })
  else
    require('treefill.session').cycle(1)
  end
end

--- Shows the one before.
function M.previous()
  if uses_builtin() then
    vim.lsp.inline_completion.select({ count = -1 })
  else
    require('treefill.session').cycle(-1)
  end
end

--- Asks now, also where nothing would be asked automatically.
function M.trigger()
  require('treefill.session').trigger()
end

--- Suggestions in all buffers; the server is started again.
function M.enable()
  require('treefill.client').enable()
end

--- No suggestions in any buffer; the server is stopped.
function M.disable()
  require('treefill.session').stop()
  require('treefill.client').disable()
end

--- The one or the other.
function M.toggle()
  if require('treefill.client').is_enabled() then
    M.disable()
  else
    M.enable()
  end
end

--- Ends the server, whatever its state, and starts another.
function M.restart()
  require('treefill.session').stop()
  require('treefill.client').restart()
end

return M
