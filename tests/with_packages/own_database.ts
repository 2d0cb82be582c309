/**
 * The record in the application's own PostgreSQL, where tools make the database equal to the
 * application's models: what becomes of the record, set up as README says, and without that.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { installTarball, NPM, run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../support/postgres.ts";

const PACKAGES = ["drizzle-kit@0.31.11", "drizzle-orm@0.45.4", "pg@8.23.1"];
const NEXT = ["drizzle-kit@1.0.0-rc.5", "drizzle-orm@1.0.0-rc.5", "pg@8.23.1"];

const README = Deno.readTextFileSync(fromRoot("lib/usage/README.md"));
const [, ROLE = ""] = /```sql\n([^]*?)```/.exec(README) ?? [];
const [FILTER = ""] = /schemaFilter: \["public"\]/.exec(README) ?? [];
const [SCHEMA = ""] = /CREATE SCHEMA calls AUTHORIZATION /.exec(README) ?? [];
const [OPTIONS = ""] = /\?options=-c%20search_path%3Dcalls/.exec(README) ?? [];

const MODELS = `import { pgTable, serial, text } from "drizzle-orm/pg-core";
export const songs = pgTable("songs", { id: serial("id").primaryKey(), title: text("title") });`;

const CALL = `import { definePolicy } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";
const routes = { "/v1": definePolicy({ deprecatedAt: "2026-11-21" }) };
const usage = await openUsage(process.argv[2], { routes, log() {} });
const handler = usage.withLifecycle(() => new Response("old"), "/v1");
await handler(new Request("http://a.example/v1"));
await usage.close();`;

/** How the record shares the database. */
type Place = "in public" | "a role of its own" | "a schema of its own";

/** What the application does to its database. */
type Tool = "drizzle-kit" | "drizzle-kit 1.0" | "drizzle-kit 1.0, filtered" | "a reset";

const ROWS: readonly (readonly [place: Place, tool: Tool, survives: boolean, isDone: boolean])[] = [
  ["in public", "drizzle-kit", false, true],
  ["in public", "a reset", false, true],
  ["a role of its own", "drizzle-kit", true, true],
  ["a role of its own", "drizzle-kit 1.0", true, false],
  ["a role of its own", "drizzle-kit 1.0, filtered", true, true],
  ["a role of its own", "a reset", true, true],
  ["a schema of its own", "drizzle-kit", true, true],
  ["a schema of its own", "drizzle-kit 1.0, filtered", true, true],
  ["a schema of its own", "a reset", true, true],
];

needing(...NPM, ...POSTGRES)(
  "a record with a role or a schema of its own survives the application's tools",
  async (t) => {
    const { folder } = await installTarball(PACKAGES);
    await using server = await PostgresServer.start();
    await server.query(`ALTER ROLE ${USER} CREATEROLE`);
    try {
      await Deno.mkdir(`${folder}/next`);
      await Deno.writeTextFile(`${folder}/next/package.json`, '{"type":"module"}');
      const options = ["--prefer-offline", "--no-audit", "--no-fund"];
      const npm = await run(`${folder}/next`, "npm", "install", ...options, ...NEXT);
      assertEquals(npm.code, 0, npm.errors);
      await Deno.writeTextFile(`${folder}/call.mjs`, CALL);
      for (const cwd of [folder, `${folder}/next`]) {
        await Deno.writeTextFile(`${cwd}/models.ts`, MODELS);
        for (const [name, filter] of [["plain", ""], ["filtered", `${FILTER},`]]) {
          const config = `export default { dialect: "postgresql", schema: "./models.ts", ${filter}
            dbCredentials: { url: process.env.URL } };`;
          await Deno.writeTextFile(`${cwd}/${name}.config.ts`, config);
        }
      }
      for (const [place, tool, survives, isDone] of ROWS) {
        await t.step(`${place}, ${tool}`, async () => {
          const name = await server.createDatabase();
          const url = server.urlOf(name);
          const apply = async () => {
            if (tool === "a reset") { // what Prisma's does
              const reset = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
              await server.query(`SET ROLE ${USER}; ${reset}`, name);
              return 0;
            }
            const [cwd, config] = [
              tool === "drizzle-kit" ? folder : `${folder}/next`,
              tool.endsWith("filtered") ? "filtered" : "plain",
            ];
            const words = ["drizzle-kit", "push", "--force", `--config=${config}.config.ts`];
            return (await run(cwd, "env", `URL=${url}`, "npx", "--no", ...words)).code;
          };
          assertEquals(await apply(), 0, "before there is a record");
          let record = url;
          if (place === "a role of its own") {
            const role = `calls_${name}`;
            await server.query(`SET ROLE ${USER}; ${ROLE.replaceAll(/\bcalls\b/g, role)}`, name);
            record = url.replace(`${USER}:${PASSWORD}@`, `${role}:password@`);
          } else if (place === "a schema of its own") {
            await server.query(SCHEMA + USER, name);
            record = url + OPTIONS;
          }
          const called = await run(folder, "node", "call.mjs", record);
          assertEquals(called.code, 0, called.errors);
          assertEquals(await apply() === 0, isDone);
          const tables = await server.query(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'media_head_%'",
            name,
          );
          assertEquals(tables.length > 0, survives);
          if (!survives) return;
          const words = ["lifecycle", "usage", "--database", record, "--gate", "7"];
          const { text, errors } = await run(folder, "npx", "--no", ...words);
          assertMatch(text, /^Still called: 1 call to \/v1 by 1 client /, errors);
        });
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);
