-- The server: when it is started and stopped, what it says of itself, and what the user hears of it. Nothing of ghost
-- text here.

local config = require('treefill.config')

local api, lsp = vim.api, vim.lsp
local NAME = 'treefill'
local M = {}

local is_enabled = true
-- Why no server is started until the user says so: the sentence that was shown, once.
local halted = nil
local status = nil
-- By client id: every client until its process has ended, and those that were told to stop, whose end is no news.
local is_running = {}
local is_expected = {}
-- By buffer: the file type that its server was told; whether it may have been edited while it had no server; and the
-- change whose text we have sent ourselves.
local opened_as = {}
local is_doubtful = {}
local sent_tick = {}
local on_ready = function() end

local function tell(sentence)
  vim.schedule(function()
    vim.notify('treefill: ' .. sentence, vim.log.levels.WARN)
  end)
end

-- A model is waited for until the first `ready`: what comes after `working` is an answer.
local function set_status(new)
  local was_ready = status and (status.message == 'ready' or status.message == 'working')
  status = new
  vim.schedule(function()
    api.nvim_exec_autocmds('User', { pattern = 'TreefillStatus', modeline = false })
    vim.cmd.redrawstatus()
  end)
  if new and new.message == 'ready' and not was_ready then
    on_ready()
  end
end

local function halt(sentence)
  halted = sentence
  set_status(nil)
  tell(sentence)
end

local function handlers()
  return {
    didChangeStatus = function(_, new)
      set_status({ kind = new.kind, busy = new.busy, message = new.message })
    end,
    -- Neovim's own handler puts its name for the client before a sentence that begins with ours.
    ['window/showMessage'] = function(_, params)
      vim.notify(params.message, vim.log.levels.WARN)
    end,
  }
end

local function capabilities()
  local found = lsp.protocol.make_client_capabilities()
  found.textDocument.inlineCompletion = { dynamicRegistration = false }
  return found
end

local function has_ended(client_id, code, signal)
  local was_expected = is_expected[client_id]
  is_expected[client_id], is_running[client_id] = nil, nil
  for bufnr in pairs(opened_as) do
    is_doubtful[bufnr] = true
  end
  if was_expected or vim.v.exiting ~= vim.NIL then
    return
  end
  -- Short enough for one line of a narrow screen: a longer message would wait for <Enter>.
  local how = signal ~= 0 and ('signal ' .. signal) or ('exit code ' .. code)
  halt(('the server ended (%s). :Treefill restart starts another.'):format(how))
end

-- The client's configuration. The command is a function so that the user hears of a server's death once, in a sentence
-- with a remedy: for an exit status that is not 0 Neovim has one of its own.
local function client_config(bufnr)
  local options = config.get()
  local settings = next(options.settings) and options.settings or vim.empty_dict()
  local code, signal = 0, 0
  return {
    name = NAME,
    cmd = function(dispatchers)
      local tell_neovim = dispatchers.on_exit
      dispatchers.on_exit = function(...)
        code, signal = ...
        return tell_neovim(0, 0)
      end
      return lsp.rpc.start(options.cmd, dispatchers, { env = options.cmd_env })
    end,
    root_dir = vim.fs.root(bufnr, options.root_markers),
    capabilities = capabilities(),
    settings = { treefill = settings },
    init_options = { statusNotifications = true, treefill = settings },
    handlers = handlers(),
    on_exit = function(_, _, client_id)
      vim.schedule(function()
        has_ended(client_id, code, signal)
      end)
    end,
  }
end

-- A buffer without a name would share its URI with all others.
local function is_wanted(bufnr)
  local options = vim.bo[bufnr]
  return api.nvim_buf_is_loaded(bufnr)
    and options.buftype == ''
    and options.modifiable
    and api.nvim_buf_get_name(bufnr) ~= ''
    and vim.b[bufnr].treefill ~= false
    and config.has_filetype(options.filetype)
end

local function each_wanted_buffer(action)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if is_wanted(bufnr) then
      action(bufnr)
    end
  end
end

local function stop_all(is_forced)
  for client_id in pairs(is_running) do
    local client = lsp.get_client_by_id(client_id)
    if client then
      is_expected[client_id] = true
      client:stop(is_forced)
    end
  end
  set_status(nil)
end

local function is_alive(client)
  return not is_expected[client.id] and not client:is_stopped()
end

local function is_shared(client, wanted)
  return client.name == NAME and is_alive(client) and client.root_dir == wanted.root_dir
end

local function attached(bufnr)
  return vim.iter(lsp.get_clients({ bufnr = bufnr, name = NAME })):find(is_alive)
end

--- The client of a buffer, once it answers; nil where there is none, or none is wanted.
function M.of(bufnr)
  return is_enabled and is_wanted(bufnr) and attached(bufnr) or nil
end

--- Gives a buffer its server, where one is wanted and none is there.
function M.attach(bufnr)
  if not is_enabled or halted or not is_wanted(bufnr) or M.of(bufnr) then
    return
  end
  local program = config.get().cmd[1]
  if vim.fn.executable(program) == 0 then
    halt(('`%s` was not found. :checkhealth treefill helps.'):format(program))
    return
  end
  local client_id = lsp.start(client_config(bufnr), { bufnr = bufnr, reuse_client = is_shared })
  if not client_id then
    return
  end
  is_running[client_id], opened_as[bufnr] = true, vim.bo[bufnr].filetype
  if config.uses_builtin() then
    lsp.inline_completion.enable(true, { client_id = client_id })
  end
end

--- Tells the server of a buffer's new file type, which may be one where nothing is wanted.
function M.reopen(bufnr)
  local client = attached(bufnr)
  if client and (opened_as[bufnr] ~= vim.bo[bufnr].filetype or not is_wanted(bufnr)) then
    lsp.buf_detach_client(bufnr, client.id)
    is_doubtful[bufnr] = true
  end
  M.attach(bufnr)
end

--- Sees to it that the server has a buffer's text. Neovim 0.11 no longer follows a buffer that was edited while no client
--- was attached, as after a server's end: its `on_lines` is gone, and it believes that it is there.
function M.bring_in_step(client, bufnr)
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local known_tick = math.max(lsp.util.buf_versions[bufnr] or 0, sent_tick[bufnr] or 0)
  if not is_doubtful[bufnr] or known_tick >= tick then
    return
  end
  sent_tick[bufnr] = tick
  local uri = vim.uri_from_bufnr(bufnr)
  -- Any notification but an edit's sends the edits that Neovim still holds back: they belong before the whole text.
  client:notify('textDocument/didFocus', { textDocument = { uri = uri } })
  client:notify('textDocument/didChange', {
    textDocument = { uri = uri, version = tick },
    contentChanges = { { text = lsp._buf_get_full_text(bufnr) } },
  })
end

--- Calls a function whenever the model has become ready.
function M.when_ready(action)
  on_ready = action
end

--- Tells the server that an item was taken; one without a command has nothing to be told.
function M.run_command(bufnr, command)
  local client = M.of(bufnr)
  if client and command then
    local params = { command = command.command, arguments = command.arguments }
    client:request('workspace/executeCommand', params, function() end, bufnr)
  end
end

--- Tells the server something of an item.
function M.notify(bufnr, method, params)
  local client = M.of(bufnr)
  if client then
    client:notify(method, params)
  end
end

--- The state of the server, in the words that |treefill.status()| documents.
function M.status()
  if not is_enabled then
    return { kind = 'Inactive', busy = false, message = 'switched off' }
  end
  if halted then
    return { kind = 'Error', busy = false, message = halted }
  end
  if next(is_running) == nil then
    return { kind = 'Inactive', busy = false, message = 'no server is running' }
  end
  return status or { kind = 'Normal', busy = true, message = 'starting' }
end

--- Whether suggestions are switched on.
function M.is_enabled()
  return is_enabled
end

--- Switches suggestions on, and starts the server.
function M.enable()
  is_enabled, halted = true, nil
  each_wanted_buffer(M.attach)
end

--- Switches suggestions off, and stops the server.
function M.disable()
  is_enabled = false
  stop_all(false)
end

--- Ends the server and starts another.
function M.restart()
  stop_all(true)
  M.enable()
end

return M
