/**
 * The server with the routes of the tests, which runs in place of `main.ts` once that has other
 * deprecated routes.
 */

import { main } from "../../main.ts";
import { ROUTES } from "./routes.ts";

await main(ROUTES);
