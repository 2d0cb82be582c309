/** The request table on the wire. */

import { assertMatch } from "@std/assert";
import {
  DEPRECATED_AT,
  publishTableItems,
  requestTable,
  runRow,
  type Send,
} from "../server/request_table.ts";
import type { MediaSubject } from "./media_subject.ts";
import { field, requestRaw } from "./raw_http.ts";
import { ServerProcess } from "./server.ts";

/**
 * Sends every row to a server on this storage until its responses are prepared.
 *
 * @param environment Variables besides those that put storage into the folder.
 * @param deno The program that runs the server; this one if left out.
 */
export async function runTable(
  t: Deno.TestContext,
  subject: MediaSubject,
  folder: string,
  { environment = {}, deno }: { environment?: Record<string, string>; deno?: string } = {},
): Promise<void> {
  const rows = requestTable(await publishTableItems(subject));
  const variables = { DEPRECATED_AT, ...environment };
  await using server = await ServerProcess.start(variables, folder, { deno });
  const send: Send = async (method, target, fields) => {
    const seen = await requestRaw(server.port, method, target, fields);
    assertMatch(field(seen, "date") ?? "", /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
    return seen;
  };
  for (const time of ["first", "second", "prepared"]) {
    for (const row of rows) await t.step(`${row.what}, ${time}`, () => runRow(row, send));
  }
}
