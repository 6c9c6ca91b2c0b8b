-- A foreign client: Neovim opens files, types in them as a user does, and asks our server for ghost text.
--
-- nvim --headless --clean -l neovim.lua RESULT ENCODING PYTHON FILE...
-- RESULT gets what was seen, as JSON: the position encoding, and for each file and step the buffer, the server's copy
-- of it and what was suggested. ENCODING is `any` for what Neovim offers by itself, else the only one that it offers.

local result_path, encoding, python = arg[1], arg[2], arg[3]
local files = vim.list_slice(arg, 4)
local LIMIT_MS = 30000

local function wait_until(what, condition)
  assert(vim.wait(LIMIT_MS, condition, 5), 'it did not come to pass: ' .. what)
end

local function start_client(bufnr)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  if encoding ~= 'any' then
    capabilities.general.positionEncodings = { encoding }
  end
  local id = vim.lsp.start({
    name = 'treefill',
    cmd = { python, '-m', 'tests.lsp.stub', 'serve' },
    capabilities = capabilities,
    init_options = { statusNotifications = true },
    handlers = {
      didChangeStatus = function(_, status)
        vim.g.treefill_status = status.message
      end,
    },
  }, { bufnr = bufnr })
  local client = assert(vim.lsp.get_client_by_id(id))
  wait_until('the server has a model', function()
    return vim.g.treefill_status == 'ready'
  end)
  return client
end

local function request(client, bufnr, method, params)
  local answer
  client:request(method, params, function(err, result)
    answer = { err = err, result = result }
  end, bufnr)
  wait_until(method, function()
    return answer ~= nil
  end)
  assert(not answer.err, vim.inspect(answer.err))
  return answer.result
end

local function full_text(bufnr)
  local ending = vim.bo[bufnr].fileformat == 'dos' and '\r\n' or '\n'
  return table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, true), ending) .. ending
end

local function type_keys(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, true, true), 'tx', false)
end

-- Takes a suggestion as Neovim 0.12 does: the item's range, counted in the encoding that was agreed on.
local function accept(client, bufnr, item)
  local function byte_column(position)
    local line = vim.api.nvim_buf_get_lines(bufnr, position.line, position.line + 1, true)[1]
    return vim.str_byteindex(line, client.offset_encoding, position.character)
  end
  local first, last = item.range.start, item.range['end']
  vim.api.nvim_buf_set_text(
    bufnr, first.line, byte_column(first), last.line, byte_column(last), vim.split(item.insertText, '\n')
  )
end

-- A step is a name and keys to type. Where it `asks`, it does so after the last character of the cursor's line.
local STEPS = {
  { 'as it was opened', '' },
  { 'typed after an emoji', 'gg0f🙂a!<Esc>' },
  { 'undone', 'u' },
  { 'done again', '<C-r>' },
  { 'a line typed below', 'Gonew = "é日本🙂"<CR>more = 1<Esc>' },
  { 'an emoji deleted', 'gg0f🙂x' },
  { 'an emoji put back', 'u' },
  { 'a word changed before an emoji', 'gg0cwname<Esc>' },
  { 'deleted over lines', 'ggVjd' },
  { 'deleted from the middle of a line to the middle of the next', 'gg0llvjld' },
  { 'all of that undone', 'uu' },
  { 'replaced everywhere', ':%s/r/🙂r🙂/g<CR>' },
  { 'replaced by line breaks', ':%s/ = / =\\r/g<CR>' },
  { 'lines joined', 'ggJJ' },
  { 'pasted lines', ':call setreg("a", ["é = 1", "", "日本 = \\"🙂\\""], "l")<CR>gg"ap' },
  { 'pasted in a line with an emoji', ':call setreg("b", "🙂\\n🙂x", "c")<CR>G"bp' },
  { 'repeated', '..' },
  { 'a line moved', ':1m$<CR>' },
  { 'every line changed at once', ':%norm A # 🙂<CR>' },
  { 'a column inserted', 'gg0<C-v>GI🙂<Esc>' },
  { 'all undone to the first text', ':silent undo 0<CR>' },
  { 'all done again', ':silent redo<CR>:silent undo 5<CR>' },
  { 'everything deleted', 'ggdG' },
  { 'written anew', 'is = "🙂"<CR>x = <Esc>' },
  { 'a suggestion taken', 'G', asks = true },
  { 'undone after that', 'u' },
  { 'typed on in a string with an emoji', 'gg0Cs = "🙂<Esc>', asks = true },
}

local seen = { files = {} }
local client
for _, path in ipairs(files) do
  vim.cmd.edit(vim.fn.fnameescape(path))
  local bufnr = vim.api.nvim_get_current_buf()
  vim.bo[bufnr].filetype = 'python'
  client = client or start_client(bufnr)
  if not vim.lsp.buf_is_attached(bufnr, client.id) then
    assert(vim.lsp.buf_attach_client(bufnr, client.id))
  end
  local steps, uri = {}, vim.uri_from_bufnr(bufnr)
  for _, step in ipairs(STEPS) do
    local before_asking, item
    type_keys(step[2])
    if step.asks then
      before_asking = full_text(bufnr)
      local row = vim.api.nvim_win_get_cursor(0)[1]
      vim.o.virtualedit = 'onemore'
      vim.api.nvim_win_set_cursor(0, { row, #vim.api.nvim_get_current_line() })
      local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
      params.context = { triggerKind = 2 }
      item = request(client, bufnr, 'textDocument/inlineCompletion', params).items[1]
      if item then
        accept(client, bufnr, item)
      end
    end
    local explained = request(client, bufnr, 'workspace/executeCommand', {
      command = 'treefill.explain',
      arguments = { uri },
    })
    table.insert(steps, {
      name = step[1],
      before_asking = before_asking,
      item = item,
      buffer = full_text(bufnr),
      mirror = explained.text,
      is_in_step = explained.is_in_step,
      sentence = explained.sentence,
    })
  end
  table.insert(seen.files, { path = path, fileformat = vim.bo[bufnr].fileformat, steps = steps })
end

seen.encoding = client.offset_encoding
seen.offered = vim.lsp.protocol.make_client_capabilities().general.positionEncodings
client:stop()
wait_until('the server has ended', function()
  return client:is_stopped()
end)
local file = assert(io.open(result_path, 'w'))
file:write(vim.json.encode(seen))
file:close()
vim.cmd('qall!')
