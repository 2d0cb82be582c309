/** Inspects responses with long fields, in a worker that the test can end; says how many. */

import { inspect } from "../../../lib/lifecycle/checking/inspect.ts";

const LENGTH = 131_072;
/** One of each syntax. */
const NAMES = ["access-control-expose-headers", "cache-control", "deprecation", "link", "sunset"];
const STARTS = ["", '"', "@1;a=", '<a>; rel="'];
const PARTS = ['\\"', '"', "<", "<a>;rel=b,", "<>;rel=sunset,", 'a="', ";a=b", "a ", "1", "\\"];

let count = 0;
const time = (name: string, value: string, more: Record<string, string> = {}) => {
  const headers = new Headers({ deprecation: "@1", sunset: "soon", ...more, [name]: value });
  inspect({ status: 503, headers, url: "https://example.com/" });
  count++;
};
for (const name of NAMES) {
  for (const start of STARTS) {
    for (const part of PARTS) time(name, start + part.repeat(LENGTH / part.length));
  }
}
// A long target with many relations, and one relation with many targets.
time("link", `<https://[${"a".repeat(LENGTH)}>; rel="${"sunset ".repeat(20_000)}"`);
time("link", Array.from({ length: 20_000 }, (_, index) => `<${index}>; rel=sunset`).join());
// Many fields beside a long one.
const others = Array.from({ length: 5_000 }, (_, index) => [`x-${index}`, "1"]);
time("cache-control", "a,".repeat(LENGTH / 2), Object.fromEntries(others));
(self as unknown as Pick<Worker, "postMessage">).postMessage(count);
