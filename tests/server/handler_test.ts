import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { assertSpyCalls } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { Policy, RoutePolicies } from "../../lib/lifecycle/policy.ts";
import { FaultLog, type LogEvent } from "../../lib/log/log.ts";
import type { HandlerOptions } from "../../lib/server/handler.ts";
import type { ProblemName } from "../../lib/server/problems.ts";
import { ReplacedError, UnpublishedError } from "../../lib/storage/errors.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import type { ItemStorage } from "../../lib/storage/storage.ts";
import { newToken } from "../../lib/storage/token.ts";
import { UsageMeter } from "../../lib/usage/record/meter.ts";
import { createHandler } from "../../main.ts";
import { plainHandler } from "../support/handlers.ts";
import { failing, fails, OneItem } from "../support/one_item.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { ROUTES, underPolicy } from "../support/routes.ts";
import {
  checkParity,
  checkProblem,
  CONFIG,
  type Seen,
  seen,
  sendTo,
  valueOf,
} from "./request_table.ts";

const now = () => Date.parse("2026-11-21T12:00:00Z");

/** The text of a response. */
const textOf = ({ content }: Seen) => new TextDecoder().decode(content);

/** A handler's log events, and a function to send requests to it without a socket. */
function handlerOn(
  storage: ItemStorage,
  options: Partial<Pick<Parameters<typeof plainHandler>[0], "config" | "recorder">> = {},
) {
  const events: LogEvent[] = [];
  const log = (event: LogEvent) => events.push(event);
  const send = sendTo(plainHandler({ storage, config: CONFIG, clock: now, log, ...options }));
  return { send, events };
}

/** The handler, as the wrappers call it, and its meter. */
function countingHandler(options: Partial<HandlerOptions>, recorder = { arrive() {}, leave() {} }) {
  const meter = new UsageMeter();
  const handle = createHandler({
    routes: ROUTES,
    storage: new OneItem(),
    config: CONFIG,
    policies: () => CONFIG.policies,
    clock: now,
    faults: new FaultLog(() => {}),
    recorder: { meter, fault: undefined, ...recorder },
    ...options,
  });
  return { handle, meter };
}

Deno.test("createHandler() opens content only for a GET that sends it", async () => {
  const storage = new OneItem();
  const { send, events } = handlerOn(storage);
  const target = `/media/${newToken()}`;
  const requests: [method: string, fields: Record<string, string>, status: number][] = [
    ["HEAD", {}, 200],
    ["HEAD", { Range: "bytes=0-1" }, 200],
    ["HEAD", { "If-None-Match": "*" }, 304],
    ["HEAD", { "If-Match": '"x"' }, 412],
    ["GET", { "If-None-Match": "*" }, 304],
    ["GET", { "If-Match": '"x"' }, 412],
    ["GET", { Range: "bytes=1000-" }, 416],
    ["OPTIONS", {}, 204],
    ["POST", {}, 405],
  ];
  for (const [method, fields, status] of requests) {
    assertEquals((await send(method, target, fields)).status, status, method);
  }
  assertSpyCalls(storage.open, 0);
  assertEquals(events, []);
});

Deno.test("createHandler() distinguishes storage faults from bugs, and logs each without its token", async () => {
  const token = newToken();
  const secret = new Error(`disk on fire at /media/${token}`);
  const down = new StorageError("sqlite", "cannot read", { cause: secret });
  const faults: ["find" | "check" | "open", Error, ProblemName, status: number, route: string][] = [
    ["find", down, "storage-unavailable", 503, "/audio/:token"],
    ["find", new TypeError(secret.message), "server-fault", 500, "/media/:token"],
    ["find", new ReplacedError("s3", secret.message), "content-replaced", 502, "/media/:token"],
    ["check", down, "storage-unavailable", 503, "/healthz"],
    ["open", down, "storage-unavailable", 503, "/media/:token"],
  ];
  for (const [operation, error, problem, status, route] of faults) {
    const { send, events } = handlerOn(new OneItem({ [operation]: fails(error) }));
    const target = route.replace(":token", token);
    const get = await send("GET", target);
    assertEquals(get.status, status);
    assertEquals(valueOf(get, "retry-after") !== undefined, status === 503);
    assertEquals(valueOf(get, "cache-control"), "no-store, no-transform");
    checkProblem(target, get, problem);
    const body = textOf(get);
    assert(!body.includes("fire") && !body.includes("sqlite"), "the cause is revealed");

    const { event, id, cause, ...facts } = events[0] as LogEvent;
    assertEquals(facts, { status, method: "GET", route });
    assertEquals([event, events.length], ["error", 1]);
    assertEquals(JSON.parse(body).instance, `urn:uuid:${id}`);
    assertStringIncludes(String(cause), error.name);
    assert(!JSON.stringify(events).includes(token), "a token is logged");

    if (operation === "open") continue; // a HEAD opens no content
    checkParity(target, await send("HEAD", target), get);
  }
});

Deno.test("createHandler() answers 410 if an item is unpublished during a GET", async () => {
  const { send, events } = handlerOn(new OneItem({ open: fails(new UnpublishedError("gone")) }));
  for (const path of ["media", "audio"]) {
    const answer = await send("GET", `/${path}/${newToken()}`);
    assertEquals(answer.status, 410);
    checkProblem(path, answer, "unpublished");
    assert(!String(valueOf(answer, "link")).includes("successor-version"));
  }
  assertEquals(events, []);
});

Deno.test("createHandler() answers 500 if even the response cannot be made", async () => {
  const storage = new OneItem({ open: () => Promise.resolve(new Uint8Array(1_000)) });
  const item = { ...storage.item, type: "audio/mpeg; x=ā" }; // no field can hold it
  storage.result = { state: "published", kind: "audio", item };
  const { send, events } = handlerOn(storage);
  const target = `/audio/${item.token}`;
  const [get, head] = [await send("GET", target), await send("HEAD", target)];
  assertEquals([get.status, events.length], [500, 1]);
  checkProblem(target, get, "server-fault");
  checkParity(target, head, get);
});

Deno.test("createHandler() answers 200 to a health check that says what is wrong with the counting", async () => {
  const recorder = { meter: new UsageMeter(), fault: undefined as string | undefined };
  const { send } = handlerOn(new OneItem(), { recorder });
  for (const [fault, text] of [[undefined, "ok\n"], ["…", "ok, but …\n"]]) {
    recorder.fault = fault;
    const get = await send("GET", "/healthz");
    assertEquals([get.status, textOf(get)], [200, text as string]);
    checkParity("/healthz", await send("HEAD", "/healthz"), get);
  }
});

Deno.test("createHandler() has a call in flight until it is counted, even if it fails", async () => {
  for (const [error, status] of [[undefined, 200], [new Error("a bug"), 500]] as const) {
    const { result } = new OneItem();
    const lookup = Promise.withResolvers<LookupResult>();
    let [inFlight, counted] = [0, 0];
    const { handle, meter } = countingHandler(
      { storage: new OneItem({ find: () => lookup.promise }) },
      {
        arrive: () => inFlight++,
        leave() {
          inFlight--;
          counted = meter.take(now()).length;
        },
      },
    );
    const request = new Request(`http://test/audio/${newToken()}`, { method: "HEAD" });
    const answer = handle(request, now());
    assertEquals(inFlight, 1);
    if (error === undefined) lookup.resolve(result);
    else lookup.reject(error);
    assertEquals([(await answer).response.status, inFlight, counted], [status, 0, 1]);
  }
});

Deno.test("createHandler() answers 405 with Allow to other methods", async () => {
  const { send } = handlerOn(new OneItem());
  const token = newToken();
  const targets = [`/audio/${token}`, `/video/${token}`, `/media/${token}`, "/media/malformed"];
  for (const target of [...targets, "/deprecation", "/openapi.json", "/healthz"]) {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      const answer = await send(method, target);
      assertEquals([answer.status, valueOf(answer, "allow")], [405, "GET, HEAD, OPTIONS"]);
      checkProblem(`${method} ${target}`, answer, "method-not-allowed");
      const isDeprecated = /^.(audio|video)/.test(target);
      assertEquals(valueOf(answer, "deprecation") !== undefined, isDeprecated);
      assertEquals(valueOf(answer, "link") !== undefined, isDeprecated);
    }
  }
  assertEquals((await send("POST", "/nowhere")).status, 404);
});

Deno.test("createHandler() answers a preflight", async () => {
  const { send } = handlerOn(failing(new Error("Not needed")));
  const items = [`/audio/${newToken()}`, `/media/${newToken()}`, "/media/x"];
  for (const target of [...items, "/deprecation", "/openapi.json", "/healthz", "/nowhere"]) {
    const { status, fields, content } = await send("OPTIONS", target, {
      Origin: "https://player.test",
      "Access-Control-Request-Method": "HEAD",
      "Access-Control-Request-Headers": "if-none-match, range",
    });
    const { deprecation, link: _, allow, ...values } = Object.fromEntries(fields);
    assertEquals([status, content.length], [204, 0]);
    assertEquals(deprecation !== undefined, target.startsWith("/audio"));
    assertEquals(allow, target === "/nowhere" ? undefined : "GET, HEAD, OPTIONS");
    assertEquals(values, {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD",
      "access-control-allow-headers": "*, Authorization, " +
        "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range",
      "access-control-expose-headers": "*",
      "access-control-max-age": "86400",
      "cache-control": "no-store, no-transform",
      "cross-origin-resource-policy": "cross-origin",
    });
  }
});

Deno.test("createHandler() quotes a malformed token in the problem, truncated", async () => {
  const { send } = handlerOn(failing(new Error("Not needed")));
  const { detail } = JSON.parse(textOf(await send("GET", `/media/${"x".repeat(100)}`)));
  assertEquals(detail, `"${"x".repeat(64)}" is not a version 4 UUID`);
});

Deno.test("createHandler() keeps only deprecated routes out of the CDN of Deno Deploy", async () => {
  const storage = new OneItem();
  const { token } = storage.item;
  const rows: [method: string, path: string, status: number, isKeptOut: boolean][] = [
    ["HEAD", `/audio/${token}`, 200, true],
    ["HEAD", `/video/${token}`, 404, true],
    ["GET", "/video/x", 400, true],
    ["POST", `/video/${token}`, 405, true],
    ["OPTIONS", `/video/${token}`, 204, true],
    ["HEAD", `/media/${token}`, 200, false],
    ["GET", "/openapi.json", 200, false],
    ["GET", "/nowhere", 404, false],
  ];
  for (const isOnDeploy of [false, true]) {
    const { send } = handlerOn(storage, { config: { ...CONFIG, isOnDeploy } });
    for (const [method, path, status, isKeptOut] of rows) {
      const answer = await send(method, path);
      const expected = isOnDeploy && isKeptOut ? "no-store" : undefined;
      const value = valueOf(answer, "deno-cdn-cache-control");
      assertEquals([answer.status, value], [status, expected], path);
    }
  }
});

Deno.test("createHandler() answers 500 if a request cannot be read, and neither announces nor counts", async () => {
  const pattern = new URLPattern({ pathname: "/audio/:token" });
  const broken = {
    pathname: "/audio/:token",
    exec() {
      throw new TypeError("broken");
    },
  } as unknown as URLPattern;
  const rows: [pattern: URLPattern, policies: RoutePolicies, cause: string][] = [
    [broken, CONFIG.policies, "TypeError: broken"],
    [pattern, {}, 'Error: Route "/audio/:token" is deprecated, but has no policy'],
  ];
  for (const [pattern, policies, cause] of rows) {
    const events: LogEvent[] = [];
    const { handle, meter } = countingHandler({
      routes: [{ pattern, serves: ["audio"], successor: "/media/:token" }],
      policies: () => policies,
      faults: new FaultLog((event) => events.push(event)),
    });
    const url = `http://test/audio/${newToken()}`;
    for (const method of ["GET", "HEAD"]) {
      const { response, reusableUntil } = await handle(new Request(url, { method }), now());
      assertEquals([response.status, reusableUntil], [500, 0]);
      const answer = await seen(response);
      if (method === "GET") checkProblem(url, answer, "server-fault");
      const announced = ["deprecation", "link"].map((name) => valueOf(answer, name));
      assertEquals(announced, [undefined, undefined]);
    }
    assertEquals(meter.take(now()), []);
    assertEquals(events[0]?.["route"], undefined);
    assertStringIncludes(String(events[0]?.["cause"]), cause);
  }
});

needing("files")("the fields that main.ts lists for a HEAD are those that are sent", async () => {
  const source = await Deno.readTextFile(fromRoot("main.ts"));
  const listed = source.matchAll(/^ \* {3}([A-Z][\w-]+): .*? {2,}\w+/gm);
  const names = Array.from(listed, ([, name = ""]) => name.toLowerCase());
  const ofRespond = names.slice(names.indexOf("access-control-allow-origin"));
  const ofRefusal = (status: number, phase: string) =>
    new RegExp(`^ \\* - ${status} ${phase}: (.+)$`, "m").exec(source)?.[1]?.toLowerCase().split(
      ", ",
    );

  const policy = { ...CONFIG.policy, sunsetAt: now() + 86_400_000 };
  const brownout = { start: now(), end: now() + 1_000 };
  const removed: Policy = { ...policy, sunsetAt: now(), afterSunset: "gone" };
  const rows: [policy: Policy, status: number, phase: string][] = [
    [policy, 200, ""],
    [{ ...policy, deprecatedAt: now() + 1_000 }, 200, ""],
    [{ ...policy, brownouts: [{ ...brownout, status: 503 }] }, 503, "brownout"],
    [{ ...policy, brownouts: [{ ...brownout, status: 410 }] }, 410, "brownout"],
    [{ ...removed, afterSunset: "redirect" }, 308, "removed"],
    [removed, 410, "removed"],
  ];
  const storage = new OneItem();
  const item = { ...storage.item, name: "a.mp3", language: "en" };
  storage.result = { state: "published", kind: "audio", item };
  for (const [policy, status, phase] of rows) {
    const config = { ...CONFIG, ...underPolicy(policy), isOnDeploy: true };
    const handle = plainHandler({ storage, config, clock: now, log() {} });
    const request = new Request(`http://test/audio/${newToken()}`, { method: "HEAD" });
    const { status: sent, headers } = await handle(request);
    const expected = phase === "" ? names : [...ofRefusal(status, phase) ?? [], ...ofRespond];
    assertEquals([sent, [...headers.keys()]], [status, expected.toSorted()], phase);
  }
});
