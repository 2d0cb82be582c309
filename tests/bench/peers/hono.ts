/**
 * What a user of Hono would write for HEAD. The second argument is the catalogue, the third whether
 * items are looked up in a "map" or in "sqlite".
 */

// deno-lint-ignore no-import-prefix -- a start would download what the import map has
import { Hono } from "npm:hono@4.13.19";
import { answer, findInMap, findInSqlite } from "./items.ts";
import { serve } from "./serve.ts";

const [, catalogue = "", where] = Deno.args;
const find = where === "map" ? findInMap(catalogue) : findInSqlite(catalogue);
const app = new Hono();

app.get("/audio/:token", (context) => {
  const { req } = context;
  const [status, fields] = answer(find, req.param("token"), req.header("if-none-match"));
  return context.body(null, status, fields);
});

serve(app.fetch);
