/**
 * The minimum cost of a GET from a bucket on this runtime: the body is passed on by the runtime. If
 * the store stops sending, only the client can end it: aborting the fetch has no effect (Deno 2.9.6).
 */

import { serveFetched } from "./signed_fetch.ts";

serveFetched((body) => body);
