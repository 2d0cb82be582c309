import { assert, assertEquals } from "@std/assert";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { describeApi } from "../lib/http/openapi.ts";
import { definePolicy, type Policy } from "../lib/lifecycle/policy.ts";
import { newToken } from "../lib/http/token.ts";
import { StorageError } from "../lib/storage/storage.ts";
import { createHandler, ROUTES } from "../main.ts";
import { publishTableItems, requestTable } from "./request_table.ts";
import { openLocal } from "./support/local_storage.ts";

const PLAIN = definePolicy({ deprecatedAt: "2027-01-01", documentation: "/deprecation" });
const FULL = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  afterSunset: "redirect",
  documentation: "/deprecation",
});

interface Operation {
  readonly deprecated?: boolean;
  readonly description?: string;
  readonly responses: Record<
    string,
    { headers?: Record<string, { required?: boolean; $ref?: string }> }
  >;
}

interface Document {
  readonly paths: Record<string, Record<string, Operation & { "x-sunset"?: string }>>;
  readonly components: { headers: Record<string, { required?: boolean }> };
}

const describe = (policy: Policy): Document => JSON.parse(describeApi(ROUTES, policy));
const templateOf = (path: string) => path.replace(":token", "{token}");

Deno.test("the description has every route with every method, and no others", () => {
  for (const policy of [PLAIN, FULL]) {
    const documented = Object.entries(describe(policy).paths)
      .flatMap(([path, item]) =>
        Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`)
      );
    const taken = ROUTES.flatMap(({ path, methods }) =>
      methods.map((method) => `${method} ${templateOf(path)}`)
    );
    assertEquals(documented.toSorted(), taken.toSorted());
  }
});

Deno.test("the description says what is deprecated, until when, and what replaces it", () => {
  for (const [policy, sunset] of [[PLAIN, undefined], [FULL, "2027-06-30"]] as const) {
    const { paths } = describe(policy);
    for (const { path, isDeprecated } of ROUTES) {
      for (const operation of Object.values(paths[templateOf(path)] ?? {})) {
        assertEquals(operation.deprecated, isDeprecated);
        assertEquals(operation["x-sunset"], isDeprecated ? sunset : undefined);
        if (!isDeprecated) continue;
        assert(operation.description?.includes("Use `/media/{token}` instead"));
        assertEquals(operation.description?.includes("2027-06-30"), sunset !== undefined);
      }
    }
  }
});

// The linter of @redocly/cli as a library: the same rules, without a process for each document.
Deno.test("the description passes the recommended rules of Redocly's linter", async () => {
  const config = await createConfig({ extends: ["recommended"] });
  for (const policy of [PLAIN, FULL]) {
    const problems = await lintFromString({ source: describeApi(ROUTES, policy), config });
    const errors = problems.filter(({ severity }) => severity === "error");
    assertEquals(errors.map(({ ruleId, message }) => `${ruleId}: ${message}`), []);
  }
  const broken = describeApi(ROUTES, PLAIN).replaceAll('"name": "token"', '"name": "other"');
  assert((await lintFromString({ source: broken, config })).some((p) => p.severity === "error"));
});

/** Statuses and field names seen, by method and path: `"HEAD /media/{token} 200"`. */
type Answers = Map<string, Set<string>[]>;

/** Sends requests for every outcome under a policy, and notes what is answered. */
async function everyAnswer(policy: Policy): Promise<Answers> {
  await using subject = await openLocal();
  const items = await publishTableItems(subject);
  const plain = await subject.publish(
    {
      kind: "video",
      type: "video/mp4",
      token: newToken(),
      publishedAt: 0,
      name: "a.mp4",
      language: "en",
    },
    new Uint8Array(1000),
  );
  const seen: Answers = new Map();
  const clock = { now: 0 };
  const config = { cacheMaxAge: 300, policy };
  const common = { config, now: () => clock.now, log() {} };
  const healthy = createHandler({ ...common, storage: subject.storage });
  const failing = (error: Error) => {
    const fail = () => Promise.reject(error);
    return createHandler({
      ...common,
      storage: { find: fail, open: fail, check: fail, close() {} },
    });
  };

  const send = async (
    handle: typeof healthy,
    target: string,
    headers: Record<string, string> = {},
  ) => {
    for (const method of ["GET", "HEAD", "OPTIONS"]) {
      const response = await handle(new Request(`http://test${target}`, { method, headers }));
      await response.body?.cancel();
      const { pathname } = new URL(`http://test${target}`);
      const route = ROUTES.find(({ path }) =>
        new URLPattern({ pathname: path }).test({ pathname })
      );
      if (route === undefined || response.status === 405) continue;
      const names = new Set(response.headers.keys());
      names.delete("content-type"); // a description of content says it, not one of fields
      const key = `${method} ${templateOf(route.path)} ${response.status}`;
      seen.set(key, [...seen.get(key) ?? [], names]);
    }
  };

  const rows = requestTable(items).flatMap(({ target, fields = {} }) => {
    // What the table asks of /media is asked of the deprecated paths too, and of the documents.
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
    await send(healthy, "/deprecation", { Accept: "application/json" });
    for (const target of [video, `/media/${plain.token}`]) {
      const head = await healthy(new Request(`http://test${target}`, { method: "HEAD" }));
      const etag = head.headers.get("etag") ?? "";
      await send(healthy, target);
      await send(healthy, target, { "If-None-Match": etag });
      await send(healthy, target, { "If-Match": '"other"' });
      for (const range of ["bytes=0-1", "bytes=9999-"]) {
        await send(healthy, target, { Range: range });
      }
    }
    for (const document of ["/deprecation", "/openapi.json"]) {
      await send(healthy, document, { Range: "bytes=999999-" });
    }
    for (const error of [new StorageError("kv", "down"), new Error("bug")]) {
      for (const target of [`/audio/${newToken()}`, video, `/media/${newToken()}`, "/healthz"]) {
        await send(failing(error), target);
      }
    }
  }
  const unpublished = await subject.publish(
    { kind: "video", type: "video/mp4", token: newToken(), publishedAt: 0 },
    new Uint8Array(10),
  );
  await subject.unpublish(unpublished.token, 1);
  clock.now = policy.deprecatedAt;
  await send(healthy, `/video/${unpublished.token}`);
  return seen;
}

Deno.test("every status and field in the description is sent, and none that is not in it", async () => {
  for (const policy of [PLAIN, FULL]) {
    const { paths, components } = describe(policy);
    const answers = await everyAnswer(policy);
    const documented = new Map<string, { always: Set<string>; all: Set<string> }>();
    for (const [path, item] of Object.entries(paths)) {
      for (const [method, { responses }] of Object.entries(item)) {
        for (const [status, { headers = {} }] of Object.entries(responses)) {
          const required = Object.entries(headers).filter(([, { required, $ref }]) =>
            required ?? components.headers[$ref?.split("/").at(-1) ?? ""]?.required
          );
          documented.set(`${method.toUpperCase()} ${path} ${status}`, {
            always: new Set(required.map(([name]) => name.toLowerCase())),
            all: new Set(Object.keys(headers).map((name) => name.toLowerCase())),
          });
        }
      }
    }

    assertEquals([...answers.keys()].toSorted(), [...documented.keys()].toSorted());

    for (const [key, seen] of answers) {
      const { always, all } = documented.get(key) ?? { always: new Set(), all: new Set() };
      for (const names of seen) {
        assertEquals([...names.difference(all)], [], `${key} has undocumented fields`);
        assertEquals([...always.difference(names)], [], `${key} lacks fields`);
      }
      const ever = new Set(seen.flatMap((names) => [...names]));
      assertEquals([...all.difference(ever)], [], `${key} never has these fields`);
    }
  }
});
