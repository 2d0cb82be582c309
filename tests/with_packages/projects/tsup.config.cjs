module.exports = {
  entry: ["calls.ts"],
  outDir: "out",
  format: ["cjs", "esm"],
  noExternal: ["@media-head/lifecycle", "pg"],
  banner: ({ format }) => (format === "esm" ? { js: process.env.BANNER } : {}),
};
