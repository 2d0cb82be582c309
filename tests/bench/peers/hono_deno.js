import { app } from "./hono.js";
import { tell } from "./work.js";

Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: tell }, app.fetch);
