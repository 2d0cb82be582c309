import { app } from "./hono.ts";
import { addRoutes, ways } from "./hono_routes.mts";

addRoutes(app);
export { ways };
export default app;
