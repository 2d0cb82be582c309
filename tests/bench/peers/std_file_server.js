/** The file server of the Deno standard library, on the folder in the first argument. */

import { serveDir } from "./node_modules/deno-std/http/file_server.js";
import { tell } from "./work.js";

const options = { fsRoot: Deno.args[1], quiet: true };

Deno.serve(
  { hostname: "127.0.0.1", port: 0, onListen: tell },
  (request) => serveDir(request, options),
);
