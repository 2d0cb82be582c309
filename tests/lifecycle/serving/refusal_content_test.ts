/** Refusals with the application's own content, from either kind of server. */

import { assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { runInNewContext } from "node:vm";
import {
  definePolicy,
  type LifecycleOptions,
  type Policy,
  type RefusalContent,
  type RefusalProblem,
  type RequestHead,
  retire,
  withLifecycle,
} from "../../../lib/lifecycle/mod.ts";
import { listening } from "../../support/node_server.ts";
import { needing } from "../../support/permissions.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { UNREADABLE } from "../../support/unreadable.ts";

const SETTINGS = {
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H", "2027-03-02T09:00Z/PT1H=410"],
  brownoutStatus: 503,
  afterSunset: "gone",
  documentation: "https://example.com/why",
} as const;
const GONE = definePolicy(SETTINGS);
const REDIRECTING = definePolicy({ ...SETTINGS, afterSunset: "redirect" });
const [BROWNOUT, GONE_BROWNOUT, REMOVED] = [
  "2027-03-01T09:30:00Z",
  "2027-03-02T09:30:00Z",
  "2027-07-01T00:00:00Z",
].map((text) => Date.parse(text)) as [number, number, number];

type Options = LifecycleOptions<RequestHead>;

/** A refusal as it is sent. */
interface Got {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly content: string;
}

/** Makes a call to an application that is retired. */
type Call = (
  settings: { policy?: Policy; at: number; options: Options },
  method: string,
) => Promise<Got>;

const byFetch: Call = async ({ policy = GONE, at, options }, method) => {
  const given = { ...options, clock: () => at };
  const handler = withLifecycle(() => new Response("old"), policy, given);
  const response = await handler(new Request("http://test/v1", { method }));
  const { status, headers } = response;
  return { status, fields: Object.fromEntries(headers), content: await response.text() };
};

const byNode: Call = async ({ policy = GONE, at, options }, method) => {
  const retired = retire(policy, { ...options, clock: () => at });
  await using server = await listening((request, response) => {
    response.setHeader("Content-Type", "text/css");
    retired(request, response, () => response.end("old"));
  });
  const { status, fields, content } = await requestRaw(server.port, method, "/v1");
  const own = fields.filter(([name]) => !/^(?:date|connection|keep-alive)$/.test(name));
  return { status, fields: Object.fromEntries(own), content: new TextDecoder().decode(content) };
};

/** Returns what a GET gets, and checks that a HEAD gets the same without content. */
async function refused(call: Call, settings: Parameters<Call>[0]): Promise<Got> {
  const [get, head] = [await call(settings, "GET"), await call(settings, "HEAD")];
  assertEquals(head, { ...get, content: "" });
  return get;
}

const CALLS: [name: string, call: Call][] = [["withLifecycle()", byFetch], ["retire()", byNode]];

for (const [name, call] of CALLS) {
  const test = call === byNode ? needing("network") : Deno.test;

  test(`${name} sends a refusal with the content of refusalBody, HEAD like GET`, async () => {
    const seen: [RefusalProblem, string][] = [];
    const options: Options = {
      successor: () => "/v2",
      refusalFields: () => [["X-A", "1"], ["content-type", "text/html"]],
      refusalBody(problem, { url }) {
        seen.push([problem, new URL(url).pathname]);
        const body = JSON.stringify({ ok: false, error: `${problem.title} é` });
        return { type: "application/vnd.example+json; charset=utf-8", body };
      },
    };
    const rows: [at: number, status: number, title: string][] = [
      [BROWNOUT, 503, "Service Unavailable"],
      [GONE_BROWNOUT, 410, "Gone"],
      [REMOVED, 410, "Gone"],
    ];
    for (const [at, status, title] of rows) {
      const plain = await refused(call, { at, options: { ...options, refusalBody: undefined } });
      const { fields, content, ...got } = await refused(call, { at, options });
      const expected = JSON.stringify({ ok: false, error: `${title} é` });
      assertEquals([got.status, content], [status, expected]);
      assertEquals(fields, {
        ...plain.fields,
        "content-type": "application/vnd.example+json; charset=utf-8",
        "content-length": String(new TextEncoder().encode(expected).length),
      });
      assertEquals(fields["x-content-type-options"], "nosniff");
      const problem = JSON.parse(plain.content);
      assertEquals(seen, [[problem, "/v1"], [problem, "/v1"]]); // for the HEAD, too
      for (const [problem] of seen.splice(0)) {
        assertThrows(() => Object.assign(problem, { title: "" }), TypeError);
      }
    }
    using error = stub(console, "error");
    const redirect = await refused(call, { policy: REDIRECTING, at: REMOVED, options });
    assertEquals([redirect.status, redirect.content, seen], [308, "", []]);
    assertEquals(error.calls.length, 0);
  });

  test(`${name} sends whatever text or bytes refusalBody returns`, async () => {
    const types = [
      "text/html",
      "a/b;c=d",
      'a/b ; c="d;\\" e" ;\tf=g;',
      "application/vnd.a.b-c+json",
    ];
    const bytes = new TextEncoder().encode("é");
    const bodies: [body: string | Uint8Array, content: string][] = [
      ["", ""],
      ["é", "é"],
      [bytes, "é"],
      [new Uint8Array(bytes.buffer, 0, 0), ""],
      [runInNewContext("new Uint8Array([195, 169])"), "é"], // of another realm
    ];
    for (const type of types) {
      for (const [body, content] of bodies) {
        const options: Options = { refusalBody: () => ({ type, body }) };
        const got = await refused(call, { at: REMOVED, options });
        assertEquals([got.fields["content-type"], got.content], [type, content]);
      }
    }
  });

  test(`${name} sends the problem if refusalBody fails, and logs each failure`, async () => {
    const given: Record<string, unknown> = {
      ...UNREADABLE,
      "nothing": undefined,
      "null": null,
      "a text": "gone",
      "a Response": new Response("gone"),
      "a promise": Promise.resolve({ type: "text/plain", body: "" }),
      "no type": { body: "" },
      "a list of types": { type: ["text/plain"], body: "" },
      "no body": { type: "text/plain" },
      "a number": { type: "text/plain", body: 7 },
      "a buffer": { type: "text/plain", body: new ArrayBuffer(1) },
      "wide numbers": { type: "text/plain", body: new Uint16Array(1) },
      "a stream": { type: "text/plain", body: new Response("").body },
      "a body that throws": {
        type: "text/plain",
        get body() {
          throw new Error("bug");
        },
      },
    };
    const types = [
      ...["", "text", "text/", "/plain", "text/plain\r\nX-A: 1", "text/plain; a", "a b/c"],
      ...["text/é", 'a/b;c="é"', "a/b,c/d", " text/plain", "text/plain "],
    ];
    for (const type of types) given[`the type ${JSON.stringify(type)}`] = { type, body: "" };
    const ways: [what: string, refusalBody: () => RefusalContent][] = Object.entries(given)
      .flatMap(([what, value]): [string, () => RefusalContent][] => [
        [`returns ${what}`, () => value as RefusalContent],
        [`throws ${what}`, () => {
          throw value;
        }],
        [`rejects with ${what}`, () => Promise.reject(value) as unknown as RefusalContent],
      ]);
    const plain = await refused(call, { at: REMOVED, options: {} });
    for (const [what, refusalBody] of ways) {
      using error = stub(console, "error");
      assertEquals(await refused(call, { at: REMOVED, options: { refusalBody } }), plain, what);
      const said = new Set(error.calls.map(({ args }) => args[0]));
      assertEquals([...said], ["The option refusalBody failed:"], what);
    }
  });
}
