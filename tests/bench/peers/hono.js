/** The application for Hono, on whichever runtime. */

import { Hono } from "hono";
import { answer } from "./work.js";

export const app = new Hono();

app.get("/audio/:token", (context) => {
  const [status, fields] = answer(context.req.param("token"), context.req.header("if-none-match"));
  return context.body(null, status, fields);
});
