import { serve } from "@hono/node-server";
import { app } from "./hono.js";
import { tell } from "./work.js";

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, tell);
