/**
 * A bare handler for GET from a bucket: signs a request, and has the runtime pass on the body. It
 * hangs if the store stops sending. The second argument is the URL of the object.
 */

import { AwsClient } from "aws4fetch";
import { ACCESS_KEY, REGION, SECRET_KEY } from "../../support/s3_store.ts";
import { GET_FIELDS, readExpected, serve } from "./serve.ts";

const { status, headers: all } = readExpected();
const headers = all.filter(([name]) => GET_FIELDS.includes(name));
const url = Deno.args[1] ?? "";
const client = new AwsClient({
  accessKeyId: ACCESS_KEY,
  secretAccessKey: SECRET_KEY,
  region: REGION,
  service: "s3",
});

serve(async (request) => {
  const range = request.headers.get("range");
  const fields = { "Accept-Encoding": "identity", ...(range === null ? {} : { Range: range }) };
  const { body } = await fetch(await client.sign(url, { headers: fields }));
  return new Response(body, { status, headers });
});
