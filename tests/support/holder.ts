/** A process that holds the lock of a database until it is killed. Argument: the database's URL. */

const [url = ""] = Deno.args;
const { openEngine } = url.startsWith("sqlite:")
  ? await import("../../lib/storage/database/sqlite/engine.ts")
  : await import("../../lib/storage/database/postgres/engine.ts");
const { exclusively } = await openEngine(url);
await exclusively(async () => {
  console.log("held");
  await new Promise((resolve) => setTimeout(resolve, 600_000));
});
