/**
 * The same requests to a backend with and without `lifecycle front`: the same status, reason, fields
 * and content come back, but for what a retirement announces.
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { Daemon, nginx } from "../support/daemon.ts";
import { FrontProcess, requestOf } from "../support/front.ts";
import { NPM } from "../support/npm.ts";
import { LINUX, needing, program } from "../support/permissions.ts";
import { ask } from "../support/wire.ts";

/** A response, taken apart. */
interface Answer {
  readonly status: string;
  /** Without those of the connection. */
  readonly fields: readonly string[];
  /** Without chunks. */
  readonly content: string;
  readonly trailers: string;
  /** Whether the last chunk is missing. */
  readonly isCut: boolean;
}

const OF_CONNECTION = /^(?:Connection|Keep-Alive|Transfer-Encoding|Date):/i;
const ANNOUNCED = /^(?:Deprecation|Link|Access-Control-Expose-Headers):/;

function takeApart(response: string): Answer {
  const end = response.indexOf("\r\n\r\n");
  const [line = "", ...lines] = response.slice(0, end).split("\r\n");
  const fields = lines.filter((line) => !OF_CONNECTION.test(line))
    .map((line) => line.replace(/:[ \t]*/, ": ").trim());
  const body = response.slice(end + 4);
  const answer = { status: line.slice("HTTP/1.1 ".length), fields, trailers: "", isCut: false };
  const isChunked = lines.some((line) => /^Transfer-Encoding: chunked$/i.test(line));
  if (!isChunked || body === "") return { ...answer, content: body };
  let [content, at] = ["", 0];
  for (;;) {
    const [line = "", size = ""] = /^([\da-f]+)[^\r\n]*\r\n/.exec(body.slice(at, at + 100)) ?? [];
    const length = parseInt(size, 16);
    at += line.length;
    if (line === "") return { ...answer, content, isCut: true };
    if (length === 0) return { ...answer, content, trailers: body.slice(at).slice(0, -2) };
    content += body.slice(at, at + length);
    at += length + 2;
  }
}

/** Compares what comes from a backend with what comes through the proxy, on a new and an old path. */
async function compare(backend: number, front: number, requests: readonly string[]) {
  const answers: Answer[] = [];
  for (const request of requests) {
    const direct = takeApart(await ask(backend, request));
    const through = takeApart(await ask(front, request));
    const isOld = /^\S+ \/v1/.test(request);
    const sortedIf = (fields: readonly string[]) => isOld ? fields.toSorted() : fields;
    const plain = through.fields.filter((field) => !ANNOUNCED.test(field));
    assertEquals(
      { ...through, fields: sortedIf(plain) },
      { ...direct, fields: sortedIf(direct.fields) },
      request,
    );
    assertEquals(plain.length < through.fields.length, isOld, request);
    answers.push(direct);
  }
  return answers;
}

needing(...NPM, LINUX, program("python3"))("Python's http.server answers the same", async () => {
  const site = await Deno.makeTempDir();
  for (const folder of ["v1", "v2"]) {
    await Deno.mkdir(`${site}/${folder}/list`, { recursive: true });
    await Deno.writeTextFile(`${site}/${folder}/a.txt`, "content\n".repeat(10_000));
  }
  await using backend = await Daemon.start("python3", ({ port }) => ({
    args: ["-m", "http.server", String(port), "--bind", "127.0.0.1", "--directory", site],
  }));
  await using front = await FrontProcess.start({ upstream: `http://127.0.0.1:${backend.port}` });
  const requests = ["/v1", "/v2"].flatMap((path) => [
    ...["GET", "HEAD"].flatMap((method) =>
      ["", "/", "/a.txt", "/list/", "/none", "/a%2etxt?b#c"].map((rest) =>
        requestOf(method, path + rest)
      )
    ),
    requestOf("GET", `${path}/a.txt`, "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n"),
    requestOf("POST", `${path}/a.txt`, "Content-Length: 2\r\n") + "hi",
    requestOf("DELETE", `${path}/a.txt`),
    `GET ${path}/a.txt HTTP/1.0\r\n\r\n`,
  ]);
  const statuses = new Set((await compare(backend.port, front.port, requests))
    .map(({ status }) => status.slice(0, 3)));
  assertEquals([...statuses].toSorted(), ["200", "301", "304", "404", "501"]);
  await Deno.remove(site, { recursive: true });
});

needing(...NPM, LINUX, program("nginx"))(
  "nginx compresses the same, and answers the same",
  async () => {
    await using backend = await Daemon.start("nginx", ({ port, folder }) => {
      const setup = nginx(
        folder,
        `gzip on; gzip_types text/plain; gzip_min_length 1; root ${folder};
      server { listen 127.0.0.1:${port};
        location / { add_header Set-Cookie a=1; add_header Set-Cookie b=2; add_header X-A "\xc3\xa4"; } }`,
      );
      const text = "content\n".repeat(1_000);
      return { ...setup, files: { ...setup.files, "v1.txt": text, "v2.txt": text } };
    });
    await using front = await FrontProcess.start({
      upstream: `http://127.0.0.1:${backend.port}`,
      routes: { "/v1.txt": { deprecatedAt: "2020-01-01" } },
    });
    const fields = [
      "",
      "Accept-Encoding: gzip\r\n",
      "Range: bytes=2-5\r\n",
      "If-None-Match: *\r\n",
    ];
    const requests = ["/v1.txt", "/v2.txt"].flatMap((path) =>
      ["GET", "HEAD", "POST"].flatMap((method) =>
        fields.map((each) => requestOf(method, path, each))
      )
    );
    const answers = await compare(backend.port, front.port, requests);
    const zipped = answers.filter(({ fields }) => fields.includes("Content-Encoding: gzip"));
    assertEquals(zipped.length, 4); // GET and HEAD, of both
    assertStringIncludes(zipped[0]?.content ?? "", "\x1f"); // how it begins
  },
);
