/** Requests without some members, or with odd ones: whatever is not as expected counts as absent. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { IncomingMessage } from "node:http";
import type { LifecycleOptions, RequestHead } from "../../../lib/lifecycle/mod.ts";
import { middlewareOf, type NodeResponse } from "../../../lib/lifecycle/serving/retire.ts";
import {
  type ApplyRetirement,
  type CallRecord,
  retirementOf,
} from "../../../lib/lifecycle/serving/retirement.ts";
import { readHead } from "../../../lib/lifecycle/serving/request_head.ts";
import { handlerOf } from "../../../lib/lifecycle/serving/with_lifecycle.ts";
import { DEPRECATED, POLICY, REMOVED } from "../../support/application_calls.ts";
import { fakeTimers } from "../../support/fake_timers.ts";
import { listening } from "../../support/node_server.ts";
import { needing } from "../../support/permissions.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { UNREADABLE } from "../../support/unreadable.ts";

const PHASES: [phase: string, at: number][] = [
  ["deprecated", DEPRECATED],
  ["removed", REMOVED],
];

const fails = (): never => {
  throw new RangeError("not to be called");
};

/** What any member may be in place of what is expected. */
const ODD: Record<string, unknown> = {
  ...UNREADABLE,
  "undefined": undefined,
  "null": null,
  "a number": 7,
  "an empty text": "",
  "an object": {},
  "a list": [[], [1], ["a"], null],
  "a function": () => undefined,
};

/** What some members may be besides. */
const ODD_MEMBERS: Record<string, Record<string, unknown>> = {
  headers: {
    "Headers that fail": Object.assign(new Headers(), { has: fails, get: fails }),
    "a record with a name that no field has": {
      "x y": "1",
      "": "2",
      "ä": "3",
      "x": undefined,
      "x-a": undefined,
    },
    "a value that no field has": new Map<string, unknown>([["x-a", "ä\n\u0416"], [
      "x-b",
      Symbol(),
    ]]),
  },
  signal: {
    "a signal that cannot be listened to": { aborted: false },
    "a signal that fails": { aborted: false, addEventListener: fails, removeEventListener: fails },
    "a signal that cannot be read": {
      get aborted(): never {
        return fails();
      },
    },
  },
  once: { "a function that fails": fails },
  stream: { "another's stream that has ended": { destroyed: true } },
  socket: {
    "a socket that fails": {
      get encrypted(): never {
        return fails();
      },
    },
  },
  url: { "no URL": "http://[", "a URL": new URL("http://test/v1") },
};

/** What is counted of a call that is answered with a status. */
const countOf = (status: number) => [["GET", null, status, true], status, "leave"];

/** A member, and what it is in place of what is expected. */
const rowsOf = (members: readonly string[]) =>
  members.flatMap((member) => [
    ...Object.entries({ ...ODD, ...ODD_MEMBERS[member] })
      .map(([what, value]) => ({ member, what, read: () => value })),
    { member, what: "a getter that throws", read: fails },
  ]);

/** What happens to a call, for a test to look at. */
function watched(at: number, options: LifecycleOptions) {
  const events: unknown[] = [];
  const record: CallRecord<Request, readonly unknown[]> = {
    arrive() {},
    count: ({ status, breaks }, { method, headers }) =>
      void events.push([method, headers.get("x"), status, breaks]),
    leave: () => void events.push("leave"),
  };
  const apply = retirementOf<Request, readonly unknown[]>(POLICY, {
    onCount: ({ status }) => void events.push(status),
    successor: () => "/v2",
    clock: () => at,
    ...options,
  }, record);
  return { events, apply };
}

Deno.test("withLifecycle() takes any request, and passes on what its handler answers or throws", async () => {
  const bug = { not: "an Error" };
  const whole = { method: "GET", url: "http://test/v1", headers: new Headers(), signal: undefined };
  const rows = [
    ...rowsOf(["method", "url", "headers", "signal"]),
    ...Object.entries(ODD).map(([what, request]) => ({ what, request })),
  ];
  for (const [phase, at] of PHASES) {
    for (const row of rows) {
      for (const isSlow of [false, true]) {
        for (const isFailing of [false, true]) {
          const note = JSON.stringify([phase, row, isSlow, isFailing].map(String)) + row.what;
          using timers = fakeTimers();
          using error = stub(console, "error");
          const { events, apply } = watched(at, {});
          const request = "member" in row
            ? Object.defineProperty({ ...whole }, row.member, { get: row.read })
            : row.request;
          const handler = handlerOf(async () => {
            if (isSlow) await new Promise((resolve) => setTimeout(resolve, 150));
            if (isFailing) throw bug;
            return new Response("old");
          }, apply);
          let thrown: unknown;
          let answered: Response | undefined;
          handler(request as Request).then(
            (response) => answered = response,
            (error) => thrown = error,
          );
          await timers.pass(0);
          await timers.pass(200);
          const status = phase === "removed" ? 410 : isFailing ? 500 : 200;
          const isThrown = status === 500;
          assertEquals(
            [answered?.status, thrown],
            isThrown ? [undefined, bug] : [status, undefined],
            note,
          );
          assertEquals(events, countOf(status), note);
          if (answered !== undefined) {
            const link = answered.headers.get("link");
            assertEquals([link, answered.headers.has("sunset")], [
              '</v2>; rel="successor-version"',
              true,
            ]);
            await answered.body?.cancel();
          }
          assertEquals(error.calls.map(({ args }) => args), [], note);
        }
      }
    }
  }
});

needing("network")(
  "retire() takes any request, and passes on what its handler answers or throws",
  async () => {
    const members = [
      ...["method", "url", "originalUrl", "headers", "socket", "stream", "upgrade", "once"],
    ];
    let act: (request: IncomingMessage, response: NodeResponse) => unknown = () => {};
    await using server = await listening((request, response) => {
      try {
        act(request, response as NodeResponse);
      } catch (error) {
        response.writeHead(500, { "Content-Length": String(error).length }).end(String(error));
      }
    });
    for (const [phase, at] of PHASES) {
      for (const { member, what, read } of rowsOf(members)) {
        for (const isFailing of [false, true]) {
          const note = `${phase}: ${member} is ${what}${
            isFailing ? ", and the handler fails" : ""
          }`;
          using error = stub(console, "error");
          const { events, apply } = watched(at, {});
          const retired = middlewareOf(
            apply as unknown as ApplyRetirement<RequestHead, [never, never]>,
          );
          act = (request, response) => {
            const odd = new Proxy(request, {
              get: (target, name) => {
                if (name === member) return read();
                const value = Reflect.get(target, name);
                return typeof value === "function" ? value.bind(target) : value;
              },
            });
            return retired(odd as never, response as never, () => {
              if (isFailing) throw new RangeError("bug");
              response.end("old");
            });
          };
          const { status, content } = await requestRaw(server.port, "GET", "/v1");
          const expected = phase === "removed" ? 410 : isFailing ? 500 : 200;
          assertEquals(status, expected, note + new TextDecoder().decode(content));
          if (expected === 500) assertEquals(new TextDecoder().decode(content), "RangeError: bug");
          assertEquals(events, countOf(expected), note);
          assertEquals(error.calls.map(({ args }) => args), [], note);
        }
      }
    }
  },
);

Deno.test("readHead() keeps what can be read, beside what cannot", () => {
  const odd = { "x y": "1", "": "2", "x-a": "a\nb", "x-b": Object.create(null), "x-c": undefined };
  const fields = { ...odd, "User-Agent": "curl/8", "x-d": 5, "x-e": ["1", "2"] };
  const expected = [["user-agent", "curl/8"], ["x-d", "5"], ["x-e", "1,2"]];
  for (const headers of [fields, new Map(Object.entries(fields)), Object.entries(fields)]) {
    const head = readHead({ method: "HEAD", url: "http://test/v1", headers });
    assertEquals([head.method, head.url, [...head.headers]], ["HEAD", "http://test/v1", expected]);
  }
  const { headers } = new Request("http://test/v1");
  assertEquals(readHead({ headers }).headers === headers, true);
});
