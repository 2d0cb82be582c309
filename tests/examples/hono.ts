/**
 * Retires some routes of a Hono application, and leaves the others alone. Run it with
 * `deno run --allow-net`.
 */

// deno-lint-ignore no-import-prefix -- the server's lock is to have none of the tests' packages
import { Hono, type MiddlewareHandler } from "npm:hono@4.13.19";
import { definePolicy, type Policy, withLifecycle } from "@media-head/lifecycle";

const policy = definePolicy({
  deprecatedAt: "2026-11-21",
  sunsetAt: "2100-06-30",
  documentation: "https://example.com/deprecation",
});

/** A lifecycle is a handler around a handler, and so it is a middleware. */
function retire(policy: Policy): MiddlewareHandler {
  return async (context, next) => {
    const handle = withLifecycle(
      async () => {
        await next();
        return context.res;
      },
      policy,
      { successor: ({ url }) => new URL(url).pathname.replace("/v1/", "/v2/") },
    );
    const response = await handle(context.req.raw);
    context.res = undefined; // else Hono merges the fields of the old response into the new
    context.res = response;
  };
}

const app = new Hono();
app.use("/v1/*", retire(policy));
app.get("/v1/greeting", (context) => context.text("Hello"));
app.get("/v2/greeting", (context) => context.text("Hello again"));

if (import.meta.main) Deno.serve(app.fetch);
export default app;
