-- Between a test and a Neovim that a person could sit before: starts one, hands it calls of Neovim's API.
--
-- nvim --headless --clean -l neovim_pipe.lua NVIM ARGUMENT...
-- Each line of standard input is a call, `[method, [argument…]]`; its answer, `[error or null, result]`, is a line of
-- standard output.

local channel = vim.fn.jobstart(vim.list_slice(arg, 1), { rpc = true })

for line in io.lines() do
  local method, arguments = unpack(vim.json.decode(line))
  local is_answered, result = pcall(vim.rpcrequest, channel, method, unpack(arguments))
  local answer = is_answered and { vim.NIL, result } or { tostring(result), vim.NIL }
  io.write(vim.json.encode(answer), '\n')
  io.flush()
end
vim.fn.jobstop(channel)
