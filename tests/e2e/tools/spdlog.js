// What VS Code uses of the package `@vscode/spdlog`, in plain JavaScript. The package itself has to be compiled, and
// without any nothing is logged: neither by the extension host nor in an extension's output channel.

const fs = require("node:fs");
const path = require("node:path");

const LEVELS = ["trace", "debug", "info", "warn", "error", "critical"];

class Logger {
  constructor(_type, _name, file) {
    this.file = file;
    this.level = LEVELS.indexOf("info");
    this.isFormatted = true;
  }

  log(level, message) {
    if (LEVELS.indexOf(level) < this.level) return;
    const time = new Date().toISOString().replace("T", " ").replace("Z", "");
    fs.appendFileSync(this.file, this.isFormatted ? `${time} [${level}] ${message}\n` : message);
  }

  getLevel() {
    return this.level;
  }

  setLevel(level) {
    this.level = level;
  }

  clearFormatters() {
    this.isFormatted = false;
  }

  setPattern() {}

  flush() {}

  drop() {}
}

for (const level of LEVELS) {
  Logger.prototype[level] = function (message) {
    this.log(level, message);
  };
}

async function createRotatingLogger(name, file) {
  await fs.promises.mkdir(path.dirname(file), { recursive: true });
  return new Logger("rotating", name, file);
}

exports.version = 0;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.Logger = Logger;
exports.createRotatingLogger = createRotatingLogger;
exports.createAsyncRotatingLogger = createRotatingLogger;
