/**
 * The server of a time when only `/audio/{token}` was deprecated.
 */

import { main } from "../../main.ts";
import { ROUTES } from "./routes.ts";

await main(
  ROUTES.map(({ pattern, serves, successor }) =>
    successor === undefined || serves.includes("video")
      ? { pattern, serves }
      : { pattern, serves, successor }
  ),
);
