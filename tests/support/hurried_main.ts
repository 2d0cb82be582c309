/** The server of the tests, which lives through five minutes in a second. */

import { main } from "../../main.ts";
import { ROUTES } from "./routes.ts";

const now = performance.now.bind(performance);
performance.now = () => now() * 300;

await main(ROUTES);
