const { resolve } = require("node:path");

const base = { mode: "production", target: "node", entry: "./calls.mjs" };
const path = resolve("out");
module.exports = [
  { ...base, output: { path, filename: "calls.cjs", library: { type: "commonjs2" } } },
  {
    ...base,
    experiments: { outputModule: true },
    output: { path, filename: "calls.mjs", module: true, library: { type: "module" } },
  },
];
