-- What is there once the plugin is on the runtime path: the command, the keys, the events. All else lives in
-- lua/treefill and is loaded when a file is opened.

if vim.g.loaded_treefill then
  return
end
vim.g.loaded_treefill = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('treefill needs Neovim 0.11 or newer.', vim.log.levels.WARN)
  return
end

require('treefill.ghost').define_highlight()
require('treefill.commands').define()
require('treefill.keys').define()
require('treefill.events').listen()
