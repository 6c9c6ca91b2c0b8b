-- The editor's events, each handed to whom it concerns.

local client = require('treefill.client')
local config = require('treefill.config')
local session = require('treefill.session')

local api = vim.api
local M = {}

--- Listens from now on.
function M.listen()
  local group = api.nvim_create_augroup('treefill', {})

  local function on(events, action)
    api.nvim_create_autocmd(events, { group = group, callback = action })
  end

  on({ 'BufEnter', 'BufFilePost', 'InsertEnter' }, function(event)
    client.attach(event.buf)
  end)
  on('FileType', function(event)
    client.reopen(event.buf)
  end)
  local function follow()
    if not config.uses_builtin() then
      session.follow()
    end
  end

  on({ 'TextChangedI', 'TextChangedP', 'CursorMovedI', 'CompleteDone' }, follow)
  on('InsertEnter', function()
    vim.schedule(follow) -- the mode is another one only after the event
  end)
  on({ 'InsertLeave', 'BufLeave' }, function()
    session.stop()
  end)
  on('ColorScheme', require('treefill.ghost').define_highlight)
  client.when_ready(session.begin)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    client.attach(bufnr)
  end
end

return M
