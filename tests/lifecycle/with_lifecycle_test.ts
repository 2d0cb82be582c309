import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  definePolicy,
  type LifecycleCall,
  type LifecycleOptions,
  type Policy,
  withLifecycle,
} from "../../lib/lifecycle/mod.ts";
import { assertSpyCalls, stub } from "@std/testing/mock";
import { checkParity, seen, valueOf } from "../server/request_table.ts";

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  documentation: "https://example.com/why",
});
const [ANNOUNCED, DEPRECATED, BROWNOUT, REMOVED] = [
  "2026-12-01T00:00:00Z",
  "2027-02-01T00:00:00Z",
  "2027-03-01T09:30:00Z",
  "2027-07-01T00:00:00Z",
].map((text) => Date.parse(text)) as [number, number, number, number];

/** The response to a request at an instant. */
async function answerAt(
  instant: number,
  handler: (request: Request) => Response | Promise<Response>,
  { method = "GET", policy = POLICY, ...options }:
    & { method?: string; policy?: typeof POLICY }
    & LifecycleOptions = {},
) {
  const retired = withLifecycle(handler, policy, { ...options, clock: () => instant });
  return await seen(await retired(new Request("http://test/v1/things?x=1", { method })));
}

Deno.test("withLifecycle() announces on every response of the handler", async () => {
  const answers = [
    () => new Response("text"),
    () => Response.json({}, { status: 201 }),
    () => new Response(null, { status: 204 }),
    () => new Response(null, { status: 304 }),
    () => Response.redirect("http://test/elsewhere"), // its headers are immutable
    () => new Response("no", { status: 404 }),
    () => Promise.resolve(new Response("down", { status: 503 })),
  ];
  for (const instant of [ANNOUNCED, DEPRECATED]) {
    for (const handler of answers) {
      const plain = await handler();
      const answer = await answerAt(instant, handler, { successor: () => "/v2/things" });
      assertEquals(answer.status, plain.status);
      assertEquals(answer.content, await plain.bytes());
      assertEquals(valueOf(answer, "deprecation"), "@1798761600");
      assertEquals(valueOf(answer, "sunset"), "Wed, 30 Jun 2027 00:00:00 GMT");
      assertEquals(
        valueOf(answer, "link"),
        '</v2/things>; rel="successor-version", <https://example.com/why>; rel="deprecation", ' +
          '<https://example.com/why>; rel="sunset"',
      );
    }
  }
});

Deno.test("withLifecycle() keeps the handler's links", async () => {
  const links = { headers: { Link: '</next>; rel="next"' } };
  const answer = await answerAt(DEPRECATED, () => new Response("", links));
  assertEquals(
    valueOf(answer, "link"),
    '</next>; rel="next", <https://example.com/why>; rel="deprecation", ' +
      '<https://example.com/why>; rel="sunset"',
  );
});

Deno.test("withLifecycle() answers in place of the handler, HEAD like GET", async () => {
  const handler = () => {
    throw new Error("The handler was called");
  };
  const redirect = { ...POLICY, afterSunset: "redirect" } as const;
  const successor = () => "/v2/things";
  const rows: [
    instant: number,
    options: LifecycleOptions & { policy?: typeof POLICY },
    status: number,
    location?: string,
  ][] = [
    [BROWNOUT, {}, 503],
    [BROWNOUT, { policy: { ...POLICY, brownoutStatus: 410 } }, 410],
    [BROWNOUT, { policy: redirect, successor }, 503],
    [REMOVED, { successor }, 410],
    [REMOVED, { policy: redirect, successor }, 308, "/v2/things"],
    [REMOVED, { policy: redirect }, 410], // no successor to redirect to
  ];
  for (const [instant, options, status, location] of rows) {
    const get = await answerAt(instant, handler, options);
    const head = await answerAt(instant, handler, { ...options, method: "HEAD" });
    checkParity(`${status}`, head, get);
    assertEquals([get.status, valueOf(get, "location")], [status, location]);
    assertEquals(valueOf(get, "deprecation"), "@1798761600");
    const isBrownout = instant === BROWNOUT;
    assertEquals(valueOf(get, "cache-control"), isBrownout ? "no-store" : "max-age=300");
    const end = isBrownout ? "Mon, 01 Mar 2027 10:00:00 GMT" : undefined;
    assertEquals(valueOf(get, "retry-after"), end);
    for (const method of ["POST", "DELETE"]) {
      assertEquals((await answerAt(instant, handler, { ...options, method })).status, status);
    }
  }
  const shorter = await answerAt(REMOVED, handler, { maxAge: 7 });
  assertEquals(valueOf(shorter, "cache-control"), "max-age=7");
});

Deno.test("withLifecycle() handles requests that the retirement does not apply to", async () => {
  const handler = ({ method }: Request) => new Response(method);
  for (const instant of [BROWNOUT, REMOVED]) {
    const options = await answerAt(instant, handler, { method: "OPTIONS" });
    assertEquals([options.status, valueOf(options, "deprecation")], [200, "@1798761600"]);
    const applies = ({ method }: Request) => method === "HEAD";
    assertEquals((await answerAt(instant, handler, { applies })).status, 200);
    const head = await answerAt(instant, handler, { applies, method: "HEAD" });
    assertEquals(head.status, instant === BROWNOUT ? 503 : 410);
  }
});

Deno.test("withLifecycle() keeps caches from reusing a response beyond its phase", async () => {
  const handler = () => new Response("", { headers: { "Cache-Control": "max-age=86400" } });
  const beforeBrownout = Date.parse("2027-03-01T08:59:00Z");
  const answer = await answerAt(beforeBrownout, handler);
  assertEquals(
    valueOf(answer, "cache-control"),
    "max-age=59, must-revalidate, stale-while-revalidate=0",
  );

  // The phase ends while the handler runs: its response belongs to the old phase, so it is stale.
  let instant = Date.parse("2027-03-01T08:59:59Z");
  const slow = withLifecycle(
    () => {
      instant += 5000;
      return handler();
    },
    POLICY,
    { clock: () => instant },
  );
  const late = await seen(await slow(new Request("http://test/")));
  assertEquals(late.status, 200);
  const stale = "max-age=0, must-revalidate, stale-while-revalidate=0";
  assertEquals(valueOf(late, "cache-control"), stale);
});

Deno.test("withLifecycle() passes on all arguments, and rejects when the handler does", async () => {
  const handler = (_: Request, name: string, count: number) => new Response(name.repeat(count));
  const retired = withLifecycle(handler, POLICY, { clock: () => DEPRECATED });
  assertEquals(await (await retired(new Request("http://test/"), "ab", 2)).text(), "abab");
  const failing = withLifecycle(() => Promise.reject(new TypeError("bug")), POLICY, {
    clock: () => DEPRECATED,
  });
  await assertRejects(() => failing(new Request("http://test/")), TypeError, "bug");
});

Deno.test("withLifecycle() reports each response to be counted, and survives a fault in that", async () => {
  const calls: LifecycleCall[] = [];
  const handler = () => new Response("no", { status: 404 });
  const options = { route: () => "/v1/:id", onCount: (call: LifecycleCall) => calls.push(call) };
  for (const instant of [ANNOUNCED, DEPRECATED, BROWNOUT, REMOVED]) {
    await answerAt(instant, handler, options);
  }
  assertEquals(calls.map(({ phase, status }) => [phase, status]), [
    ["announced", 404],
    ["deprecated", 404],
    ["brownout", 503],
    ["removed", 410],
  ]);
  assertEquals(calls[0], {
    route: "/v1/:id",
    phase: "announced",
    status: 404,
    client: "(no User-Agent)",
  });

  const route = () => {
    throw new Error("bug");
  };
  const request = new Request("http://test/v1", { headers: { "User-Agent": "curl/8" } });
  const upgrade = () => { // as Deno.upgradeWebSocket() leaves a request
    Object.defineProperty(request, "headers", { get: route });
    return new Response("switched");
  };
  await withLifecycle(upgrade, POLICY, { ...options, clock: () => DEPRECATED })(request);
  assertEquals(calls.at(-1)?.client, "curl");

  using error = stub(console, "error");
  for (const faulty of [{ onCount: route }, { ...options, route }]) {
    assertEquals((await answerAt(REMOVED, handler, faulty)).status, 410);
  }
  assertSpyCalls(error, 2);
});

Deno.test("withLifecycle() refuses a policy that definePolicy() has not read", () => {
  for (const policy of [{ deprecatedAt: "2027-01-01" }, {}]) {
    const wrap = () => withLifecycle(() => new Response(), policy as unknown as Policy);
    assertThrows(wrap, TypeError, "the result of definePolicy(), got deprecatedAt");
  }
});

Deno.test("withLifecycle() refuses an age that no cache understands", () => {
  for (const maxAge of [-1, 0.5, NaN, Infinity, 2 ** 31 + 1, "300", null]) {
    const options = { maxAge } as LifecycleOptions;
    const make = () => withLifecycle(() => new Response(), POLICY, options);
    assertThrows(make, TypeError, "maxAge: expected a whole number of seconds from 0 to");
  }
  for (const maxAge of [0, 2 ** 31, undefined]) {
    withLifecycle(() => new Response(), POLICY, { maxAge } as LifecycleOptions);
  }
});
