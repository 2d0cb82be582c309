import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { assertSpyCalls } from "@std/testing/mock";
import { PROBLEM_TYPES, PROBLEM_TYPES_PAGE } from "../../lib/server/problem_types.ts";
import { newToken } from "../../lib/storage/token.ts";
import type { LogEvent } from "../../lib/server/log.ts";
import { type Storage, StorageError, UnpublishedError } from "../../lib/storage/storage.ts";
import { createHandler, ROUTES } from "../../main.ts";
import { checkProblem, CONFIG, seen, type Send, valueOf } from "./request_table.ts";
import { linkedItem } from "../storage/linked_item_suite.ts";
import { failing, fails, OneItem } from "../support/one_item.ts";

const now = () => Date.parse("2026-11-21T12:00:00Z");

/** A handler, its log events, and a function to send requests to it without a socket. */
function handlerOn(storage: Storage) {
  const events: LogEvent[] = [];
  const handle = createHandler({
    storage,
    config: CONFIG,
    now,
    log: (event) => events.push(event),
  });
  const send: Send = async (method, target, fields) => {
    const url = URL.canParse(target) ? target : `http://test${target}`;
    return await seen(await handle(new Request(url, { method, headers: fields })));
  };
  return { handle, send, events };
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

Deno.test("createHandler() opens no content for an item at a URL", async () => {
  const storage = new OneItem();
  const item = linkedItem();
  storage.result = { state: "linked", kind: "audio", item };
  const { send, events } = handlerOn(storage);
  for (const method of ["GET", "HEAD"]) {
    for (const path of ["media", "audio"]) {
      for (const fields of [{}, { Range: "bytes=0-1" }, { "If-Match": '"x"' }]) {
        const answer = await send(method, `/${path}/${item.token}`, fields);
        assertEquals([answer.status, valueOf(answer, "location")], [307, item.location]);
      }
    }
  }
  assertSpyCalls(storage.open, 0);
  assertEquals(events, []);
});

Deno.test("createHandler() distinguishes a storage fault (503) from a bug (500)", async () => {
  const token = newToken();
  const secret = new Error(`disk on fire at /media/${token}`);
  const faults: ["find" | "check" | "open", Error, number, target: string][] = [
    ["find", new StorageError("sqlite", "cannot read", { cause: secret }), 503, `/audio/${token}`],
    ["find", new TypeError(secret.message), 500, `/media/${token}`],
    ["check", new StorageError("sqlite", "cannot read"), 503, "/healthz"],
    ["open", new StorageError("files", "content is missing"), 503, `/media/${token}`],
  ];
  for (const [operation, error, status, target] of faults) {
    const { send, events } = handlerOn(new OneItem({ [operation]: fails(error) }));
    const get = await send("GET", target, {});
    assertEquals(get.status, status);
    const fields = Object.fromEntries(get.fields);
    assertEquals(fields["retry-after"], status === 503 ? "5" : undefined);
    assertEquals(fields["cache-control"], "no-store");
    assertEquals(fields["deprecation"], target.startsWith("/audio") ? "@1772600767" : undefined);

    checkProblem(target, get, status === 503 ? "storage-unavailable" : "server-fault");
    const body = new TextDecoder().decode(get.content);
    assert(!body.includes("fire") && !body.includes("sqlite"), "the cause is revealed");
    const { instance } = JSON.parse(body);
    assertMatch(instance, /^urn:uuid:[0-9a-f-]{36}$/);
    const { event, id, route, cause } = events[0] as LogEvent;
    assertEquals([event, `urn:uuid:${id}`, events.length], ["error", instance, 1]);
    assertEquals(
      route,
      ROUTES.map(({ path }) => path).find((path) => path.slice(0, 3) === target.slice(0, 3)),
    );
    assertStringIncludes(String(cause), error.name);
    assert(!JSON.stringify(events).includes(token), "a token is logged");

    if (operation === "open") continue; // a HEAD opens no content
    const head = await send("HEAD", target, {});
    assertEquals([head.status, head.fields], [get.status, get.fields]);
    assertEquals(head.content.length, 0);
  }
});

Deno.test("createHandler() answers 410 if an item is unpublished during a GET", async () => {
  const { send, events } = handlerOn(new OneItem({ open: fails(new UnpublishedError("gone")) }));
  for (const path of ["media", "audio"]) {
    const answer = await send("GET", `/${path}/${newToken()}`, {});
    assertEquals(answer.status, 410);
    checkProblem(path, answer, "unpublished");
    assert(!String(valueOf(answer, "link")).includes("successor-version"));
  }
  assertEquals(events, []);
});

Deno.test("createHandler() answers 405 with Allow to other methods", async () => {
  const { send } = handlerOn(new OneItem());
  const token = newToken();
  const targets = [`/audio/${token}`, `/video/${token}`, `/media/${token}`, "/media/malformed"];
  for (const target of [...targets, "/deprecation", "/openapi.json", "/healthz"]) {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      const answer = await send(method, target, {});
      assertEquals([answer.status, valueOf(answer, "allow")], [405, "GET, HEAD, OPTIONS"]);
      checkProblem(`${method} ${target}`, answer, "method-not-allowed");
      const isDeprecated = /^.(audio|video)/.test(target);
      assertEquals(valueOf(answer, "deprecation") !== undefined, isDeprecated);
      assertEquals(valueOf(answer, "link") !== undefined, isDeprecated);
    }
  }
  assertEquals((await send("POST", "/nowhere", {})).status, 404);
});

Deno.test("createHandler() answers a preflight", async () => {
  const { send } = handlerOn(failing(new Error("Not needed")));
  const items = [`/audio/${newToken()}`, `/media/${newToken()}`, "/media/x"];
  for (const target of [...items, "/deprecation", "/openapi.json", "/healthz"]) {
    const { status, fields, content } = await send("OPTIONS", target, {
      Origin: "https://player.test",
      "Access-Control-Request-Method": "HEAD",
      "Access-Control-Request-Headers": "if-none-match, range",
    });
    const values = Object.fromEntries(fields);
    assertEquals([status, content.length], [204, 0]);
    assertEquals(values["access-control-allow-origin"], "*");
    assertEquals(values["access-control-allow-methods"], "GET, HEAD");
    assertEquals(
      values["access-control-allow-headers"],
      "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range",
    );
    assertEquals(values["access-control-max-age"], "86400");
    assertEquals(values["allow"], "GET, HEAD, OPTIONS");
    assertEquals(values["content-length"], undefined);
    assertEquals("deprecation" in values, target.startsWith("/audio"));
  }
});

Deno.test("createHandler() quotes a malformed token in the problem, truncated", async () => {
  const { send } = handlerOn(failing(new Error("Not needed")));
  const { content } = await send("GET", `/media/${"x".repeat(100)}`, {});
  assertEquals(JSON.parse(new TextDecoder().decode(content)), {
    type: "/deprecation#malformed-token",
    title: "Malformed token",
    status: 400,
    detail: `"${"x".repeat(64)}" is not a version 4 UUID`,
  });
});

Deno.test("createHandler() explains every problem type at its URI", async () => {
  const { send } = handlerOn(failing(new Error("Not needed")));
  for (const [name, { title, meaning }] of Object.entries(PROBLEM_TYPES)) {
    const { pathname, hash } = new URL(`${PROBLEM_TYPES_PAGE}#${name}`, "http://test");
    const { status, content } = await send("GET", pathname, { Accept: "text/html" });
    assertEquals(status, 200);
    const html = new TextDecoder().decode(content);
    const [, explanation = ""] = html.split(`id="${hash.slice(1)}"`);
    for (const text of [title, meaning]) {
      assertStringIncludes(explanation.slice(0, 500), text);
    }
  }
});
