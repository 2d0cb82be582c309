// What an application of Hono answers, on whatever runs it.

import type { Context, Env, Hono } from "hono";
import { setCookie } from "hono/cookie";
import { stream } from "hono/streaming";
import { broken, bytes, CACHE, control, FIELDS, NEXT, PAIRS, parts, upgrade } from "./shared.mts";

const set = (context: Context) => {
  context.header("Cache-Control", CACHE);
  context.header("Cache-Control", "public", { append: true });
  context.header("Link", NEXT);
  setCookie(context, "a", "1");
  setCookie(context, "b", "2");
};
export const ways: ((context: Context) => Response | Promise<Response>)[] = [
  (context) => context.text("old", 200, FIELDS),
  (context) => context.body("old", { headers: PAIRS }),
  (context) => {
    set(context);
    return context.html("old");
  },
  () => new Response("old", { headers: PAIRS }),
  (context) => context.newResponse("old", 200, FIELDS),
  (context) => {
    set(context);
    return stream(context, async (out) => {
      for await (const part of parts()) await out.write(part);
    });
  },
];
export function addRoutes<E extends Env>(app: Hono<E>): void {
  for (const [index, way] of ways.entries()) app.get(`/v1/ways/${index}`, way);
  app.get("/v1/socket", ({ req }) => upgrade(req.raw));
  app.get("/v1/redirect", ({ req }) => Response.redirect(new URL("/v1/ways/0", req.url)));
  app.get("/v1/error", () => {
    throw new Error("wrong");
  });
  app.get("/v1/broken", () => new Response(bytes(broken())));
  app.onError((_, context) => context.text("wrong", 500));
  app.get("/control", ({ req }) => new Response(control(req.url)));
}
