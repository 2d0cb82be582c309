import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { addRoutes, ways } from "./hono_routes.mts";
import { retired } from "./on_node.mts";
import { ORIGIN } from "./shared.mts";

const app = new Hono<{ Bindings: HttpBindings }>();
app.use(cors({ origin: ORIGIN }));
app.use(
  "/v1/*",
  async ({ env, res }, next) =>
    await retired(env.incoming, env.outgoing.setHeaders(res.headers), next) ??
      RESPONSE_ALREADY_SENT,
);
addRoutes(app);
export { ways };
export const listen = () => createAdaptorServer(app).listen(0, "127.0.0.1");
