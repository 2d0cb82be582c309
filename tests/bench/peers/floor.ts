/**
 * The floor: answers every request with a clone of one constant response. A server on this runtime
 * can hardly respond for less.
 */

import { readExpected, serve } from "./serve.ts";

const { status, headers, length } = readExpected();
const constant = new Response(length > 0 ? new Uint8Array(length) : null, { status, headers });

serve(() => constant.clone());
