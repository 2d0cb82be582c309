import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { describeApi } from "../../lib/documents/openapi.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { pathOf, withToken } from "../../lib/server/route.ts";
import { ReplacedError } from "../../lib/storage/errors.ts";
import { newToken, parseToken } from "../../lib/storage/token.ts";
import {
  checkParity,
  publishTableItems,
  requestTable,
  seen,
  valueOf,
} from "../server/request_table.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { plainHandler } from "../support/handlers.ts";
import { openMemory } from "../support/memory_storage.ts";
import { failing } from "../support/one_item.ts";
import { ROUTES, underPolicy } from "../support/routes.ts";

const SETTINGS = { deprecatedAt: "2027-01-01", documentation: "/deprecation" };
const PLAIN = definePolicy(SETTINGS);
const SUNSET = definePolicy({ ...SETTINGS, sunsetAt: "2027-06-30" });
const FULL = definePolicy({
  ...SETTINGS,
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  brownoutStatus: 503,
  afterSunset: "redirect",
});
const POLICIES = [PLAIN, SUNSET, FULL];

type JsonSchema = Exclude<Parameters<typeof z.fromJSONSchema>[0], boolean>;

interface DocumentedResponse {
  readonly description: string;
  readonly headers?: Record<string, object>;
  readonly content?: Record<string, { schema?: JsonSchema }>;
}

interface Operation {
  readonly deprecated?: boolean;
  readonly description?: string;
  readonly responses: Record<string, DocumentedResponse>;
}

interface Document {
  readonly info: { readonly description: string };
  readonly paths: Record<string, Record<string, Operation & { "x-sunset"?: string }>>;
  readonly components: { readonly parameters: Record<string, { schema: JsonSchema }> };
}

/** The OpenAPI description, with all references resolved. */
function describe(policy: Policy): Document {
  const document = JSON.parse(describeApi(ROUTES, underPolicy(policy)));
  const follow = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(follow);
    const { $ref, ...rest } = value as Record<string, unknown>;
    const target = typeof $ref === "string"
      ? $ref.slice("#/".length).split("/").reduce((from, name) => from[name], document)
      : {};
    return Object.fromEntries(
      Object.entries({ ...target, ...rest }).map(([name, value]) => [name, follow(value)]),
    );
  };
  const { paths, ...rest } = follow(document) as Document;
  const operations = Object.entries(paths)
    .map(([path, { parameters: _, ...operations }]) => [path, operations]);
  return { paths: Object.fromEntries(operations), ...rest };
}

Deno.test("the OpenAPI description marks deprecated operations, with removal date and replacement", () => {
  for (const policy of POLICIES) {
    const sunset = policy.sunsetAt && "2027-06-30";
    const { paths } = describe(policy);
    for (const route of ROUTES) {
      const isDeprecated = route.successor !== undefined || undefined;
      for (const operation of Object.values(paths[withToken(pathOf(route), "{token}")] ?? {})) {
        assertEquals(operation.deprecated, isDeprecated);
        assertEquals(operation["x-sunset"], isDeprecated ? sunset : undefined);
        if (!isDeprecated) continue;
        assert(operation.description?.includes("Use `/media/{token}` instead"));
        assertEquals(operation.description?.includes("2027-06-30"), sunset !== undefined);
      }
    }
  }
});

Deno.test("the OpenAPI description explains 503 and 410 by the policy", () => {
  const [unavailable, unpublished] = ["Storage unavailable", "Unpublished"];
  const [disabled, removed] = [", or: Brownout", ", or: Removed"];
  const brownoutsWith = (status: 503 | 410) => FULL.brownouts.map((one) => ({ ...one, status }));
  const rows: [path: string, policy: Policy, expected: [string, string]][] = [
    ["/audio/{token}", PLAIN, [unavailable, unpublished]],
    ["/audio/{token}", SUNSET, [unavailable, unpublished + removed]],
    ["/video/{token}", FULL, [unavailable + disabled, unpublished + removed]],
    ["/video/{token}", { ...FULL, brownouts: brownoutsWith(410) }, [
      unavailable,
      unpublished + disabled + removed,
    ]],
    ["/video/{token}", { ...FULL, brownouts: [...brownoutsWith(503), ...brownoutsWith(410)] }, [
      unavailable + disabled,
      unpublished + disabled + removed,
    ]],
    ["/media/{token}", FULL, [unavailable, unpublished]],
  ];
  for (const [path, policy, expected] of rows) {
    const responses = describe(policy).paths[path]?.["get"]?.responses ?? {};
    assertEquals([503, 410].map((status) => responses[status]?.description), expected);
  }
});

Deno.test("the OpenAPI description accepts the same tokens as parseToken()", () => {
  const schema = describe(PLAIN).components.parameters["token"]?.schema;
  assert(schema !== undefined);
  const documented = z.fromJSONSchema(schema);
  const token = newToken();
  const texts = [
    ...[token, token.toUpperCase(), token.replaceAll("-", ""), `{${token}}`, `${token} `],
    ...["5b6ea11c-9c5e-1b58-8f6b-0a7a6cf5d1e0", "5b6ea11c-9c5e-4b58-cf6b-0a7a6cf5d1e0"],
    ...["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "x", ""],
  ];
  for (const text of texts) {
    assertEquals(documented.safeParse(text).success, parseToken(text) !== undefined, text);
  }
});

/** A response as received. */
interface SeenAnswer {
  /** Field names in lower case, except Content-Type, which OpenAPI describes with the content. */
  readonly names: Set<string>;
  /** The media type without parameters, or empty. */
  readonly type: string;
  /** Empty for HEAD. */
  readonly text: string;
  /** Whether the request had a valid Host. */
  readonly hasHost: boolean;
}

/** Responses by method, path and status: `"HEAD /media/{token} 200"`. */
type Answers = Map<string, SeenAnswer[]>;

/** A request whose preconditions throw when read: a 500 that is not storage's. */
function unreadable(target: string, method: string): Request {
  const request = new Request(`http://test${target}`, { method });
  const { headers } = request;
  const read = headers.get.bind(headers);
  headers.get = (name) => {
    if (name === "if-match") throw new Error("bug");
    return read(name);
  };
  return Object.defineProperty(request, "headers", { value: headers });
}

/** Sends requests for every outcome under a policy, and returns the responses. */
async function everyAnswer(policy: Policy): Promise<Answers> {
  await using subject = await openMemory();
  const items = await publishTableItems(subject);
  const publish = (more: { name?: string; language?: string }, length: number) =>
    subject.publish({ ...newMetadata("video"), ...more }, new Uint8Array(length));
  const plain = await publish({ name: "a.mp4", language: "en" }, 1000);
  const unpublished = await publish({}, 10);
  await subject.unpublish(unpublished.token, 1);
  const answers: Answers = new Map();
  const clock = { now: 0 };
  const config = { cacheMaxAge: 300, ...underPolicy(policy) };
  const common = { config, clock: () => clock.now, log() {} };
  const healthy = plainHandler({ ...common, storage: subject.storage });

  const note = async (handle: typeof healthy, request: Request) => {
    const { method, url } = request;
    const answer = await seen(await handle(request));
    const route = ROUTES.find(({ pattern }) => pattern.test(url));
    if (route === undefined) return undefined;
    const names = new Set(answer.fields.map(([name]) => name));
    names.delete("content-type");
    const type = valueOf(answer, "content-type")?.split(";")[0] ?? "";
    const text = new TextDecoder().decode(answer.content);
    const hasHost = !request.headers.has("host");
    // OpenAPI has no place for methods that are not accepted but beside those that are.
    for (const described of answer.status === 405 ? ["GET", "HEAD"] : [method]) {
      const key = `${described} ${withToken(pathOf(route), "{token}")} ${answer.status}`;
      answers.set(key, [...answers.get(key) ?? [], { names, type, text, hasHost }]);
    }
    return answer;
  };
  type Fields = Record<string, string>;
  const send = async (handle: typeof healthy, target: string, headers: Fields = {}) => {
    const [get, head] = await Promise.all(
      ["GET", "HEAD", "OPTIONS"].map((method) =>
        note(handle, new Request(`http://test${target}`, { method, headers }))
      ),
    );
    if (get && head && headers["Range"] === undefined) checkParity(target, head, get);
  };

  const rows = requestTable(items).flatMap(({ target, fields = {} }) => {
    // Requests for /media are repeated on the deprecated paths and the documents.
    const others = target === `/media/${items.audio.token}`
      ? ["/deprecation", "/openapi.json", `/audio/${items.audio.token}`]
      : target === `/media/${items.unpublished}`
      ? [`/audio/${items.unpublished}`]
      : [];
    return [target, ...others].map((target) => ({ target, fields }));
  }).filter(({ target }) => target.startsWith("/") && !target.startsWith("//"));
  const video = `/video/${plain.token}`;
  const instants = [policy.deprecatedAt, policy.brownouts[0]?.start, policy.sunsetAt];
  for (const instant of instants) {
    if (instant === undefined) continue;
    clock.now = instant;
    for (const { target, fields } of rows) await send(healthy, target, fields);
    await send(healthy, `/video/${unpublished.token}`);
    for (const fields of [{}, { Range: "bytes=0-1" }]) {
      await send(healthy, "/deprecation", { Accept: "application/json", ...fields });
    }
    for (const target of [video, `/media/${plain.token}`]) {
      const conditions = [{}, { "If-None-Match": "*" }, { "If-Match": '"other"' }];
      const ranges = ["bytes=0-1", "bytes=9999-"].map((Range) => ({ Range }));
      for (const fields of [...conditions, ...ranges]) await send(healthy, target, fields);
    }
    for (const route of ROUTES) {
      const target = withToken(pathOf(route), newToken());
      await send(healthy, target, { Host: "a b" });
      await note(healthy, new Request(`http://test${target}`, { method: "POST" }));
    }
    for (const document of ["/deprecation", "/openapi.json"]) {
      await send(healthy, document, { Range: "bytes=999999-" });
      for (const method of ["GET", "HEAD"]) await note(healthy, unreadable(document, method));
    }
    const replaced = new ReplacedError("bucket", "content was replaced");
    for (const error of [new StorageError("sqlite", "down"), new Error("bug"), replaced]) {
      for (const target of [`/audio/${newToken()}`, video, `/media/${newToken()}`, "/healthz"]) {
        if (target === "/healthz" && error === replaced) continue; // it does not read content
        await send(plainHandler({ ...common, storage: failing(error) }), target);
      }
    }
  }
  return answers;
}

/** Removes a format that Zod takes for absolute URLs only. */
function withoutReferences(key: string, value: unknown): unknown {
  return key === "format" && value === "uri-reference" ? undefined : value;
}

/** The fields of a response that the OpenAPI description states once for all responses. */
function commonFields(
  key: string,
  { type, hasHost }: SeenAnswer,
  { sunsetAt }: Policy,
): Set<string> {
  const [method, path = "", status] = key.split(" ");
  const isLeftToRest = hasHost && (method === "OPTIONS" || Number(status) >= 400);
  return new Set([
    ...["access-control-allow-origin", "access-control-expose-headers"],
    ...["cross-origin-resource-policy", "cache-control"],
    ...(status === "204" || status === "304" ? [] : ["content-length"]),
    ...(type === "" ? [] : ["x-content-type-options"]),
    ...(method === "OPTIONS" && status === "204"
      ? ["allow-methods", "allow-headers", "max-age"].map((name) => `access-control-${name}`)
      : []),
    ...(isLeftToRest && /^.(audio|video)/.test(path)
      ? ["deprecation", "link", ...(sunsetAt === undefined ? [] : ["sunset"])]
      : []),
  ]);
}

Deno.test("the OpenAPI description lists exactly what the server sends", async () => {
  for (const policy of POLICIES) {
    const { info, paths } = describe(policy);
    const once = new Set(info.description.toLowerCase().match(/[\w-]+/g));
    const answers = await everyAnswer(policy);
    type Content = DocumentedResponse["content"];
    const documented = new Map<string, { all: Set<string>; content: Content }>();
    for (const [path, item] of Object.entries(paths)) {
      for (const [method, { responses }] of Object.entries(item)) {
        for (const [status, { headers = {}, content }] of Object.entries(responses)) {
          assert(method !== "head" || content === undefined, `HEAD ${path} has content`);
          documented.set(`${method.toUpperCase()} ${path} ${status}`, {
            all: new Set(Object.keys(headers).map((name) => name.toLowerCase())),
            // A HEAD has the media type of its GET, which is where OpenAPI describes it.
            content: item[method === "head" ? "get" : method]?.responses[status]?.content,
          });
        }
      }
    }

    assertEquals([...answers.keys()].toSorted(), [...documented.keys()].toSorted());

    for (const [key, seen] of answers) {
      const response = documented.get(key);
      assert(response !== undefined, key);
      const { all, content = {} } = response;
      for (const answer of seen) {
        const { names } = answer;
        const common = commonFields(key, answer, policy);
        assertEquals([...common.difference(once)], [], "common fields not in the description");
        assertEquals([...common.intersection(all)], [], `${key} repeats common fields`);
        const undocumented = names.difference(all.union(common));
        assertEquals([...undocumented], [], `${key} has undocumented fields`);
        assertEquals([...common.difference(names)], [], `${key} lacks fields`);
      }
      const ever = new Set(seen.flatMap(({ names }) => [...names]));
      assertEquals([...all.difference(ever)], [], `${key} never has these fields`);

      const types = new Set(seen.map(({ type }) => type).filter((type) => type !== ""));
      const ranges = [...types].map((type) => type in content ? type : type.replace(/\/.*/, "/*"));
      assertEquals([...new Set(ranges)].toSorted(), Object.keys(content).toSorted(), key);
      for (const { type, text } of seen) {
        const schema = content[type]?.schema;
        if (schema?.type !== "object" || text === "" || key.endsWith("206")) continue;
        z.fromJSONSchema(JSON.parse(JSON.stringify(schema), withoutReferences))
          .parse(JSON.parse(text));
      }
    }
  }
});
