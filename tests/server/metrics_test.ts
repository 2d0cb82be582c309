import { assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { openLedgerToChange } from "../../lib/usage/record/open_ledger.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLedgerIn, openLocal } from "../support/local_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { mustRun } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";
import { until as poll } from "../support/within.ts";

const test = needing("processes");

const [ALERT, NOT_RECORDED, MISSING] = [
  "DeprecatedRouteStillCalled",
  "DeprecatedRouteNotRecorded",
  "DeprecatedRouteServerMissing",
];

interface Metrics {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly Metric[] }[];
  }[];
}

interface Metric {
  readonly name: string;
  readonly sum?: { readonly dataPoints: readonly Point[] };
  readonly gauge?: { readonly dataPoints: readonly Point[] };
}

interface Point {
  readonly asInt?: string | number;
  readonly asDouble?: number;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: { readonly stringValue: string };
  }[];
}

/** Returns the values of every series, `"name a=1,b=2"`, in an export. */
function seriesIn({ resourceMetrics }: Metrics): Map<string, number> {
  const metrics = resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) => metrics)
  ).filter(({ name }) => name.startsWith("media_head"));
  return new Map(
    metrics.flatMap(({ name, sum, gauge }) =>
      [...sum?.dataPoints ?? [], ...gauge?.dataPoints ?? []].map((point) => {
        const labels = point.attributes.map(({ key, value }) => `${key}=${value.stringValue}`);
        return [
          `${name} ${labels.sort().join(",")}`,
          Number(point.asInt ?? point.asDouble),
        ] as const;
      })
    ),
  );
}

/** Starts a collector that records each export, and the text of everything that it receives. */
function startCollector() {
  const exports: Map<string, number>[] = [];
  const texts: string[] = [];
  const paths = new Set<string>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const text = await request.text();
    texts.push(text);
    const { pathname } = new URL(request.url);
    paths.add(pathname);
    if (pathname !== "/v1/metrics") return new Response("{}");
    exports.push(seriesIn(JSON.parse(text)));
    return new Response("{}", { headers: { "Content-Type": "application/json" } });
  });
  /** Waits for an export that meets a condition. */
  const until = (isTrue: (values: Map<string, number>) => boolean) =>
    poll("an export", () => exports.some(isTrue));
  /**
   * Waits for the next export. Deno 2.9.6 hangs if it exits while an export asks the process for its
   * values, so right after one is the time to stop a server.
   */
  async function next(): Promise<void> {
    const seen = exports.length;
    await poll("an export", () => exports.length > seen);
  }
  const environment = {
    OTEL_DENO: "true",
    OTEL_DENO_TRACING: "false",
    OTEL_DENO_CONSOLE: "ignore",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
    OTEL_METRIC_EXPORT_INTERVAL: "1500",
    DEPRECATED_AT: "2020-01-01",
  };
  const collected = { exports, texts, paths, until, next, environment };
  return { ...collected, [Symbol.asyncDispose]: () => server.shutdown() };
}

const [REQUESTS, SUNSET] = ["media_head.deprecated.requests", "media_head.sunset"];

function series(route: string, status: string, impact: string): string {
  return `${REQUESTS} impact=${impact},method=HEAD,phase=deprecated,route=${route},status=${status}`;
}

test("a server process exports calls and removal dates to an OTLP collector", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1));
  await using collector = startCollector();
  const { exports, texts, paths, until, next, environment } = collector;
  const settings = { ...environment, SUNSET_AT: "2999-01-01" };
  await using server = await ServerProcess.start(settings, subject.folder);
  const head = (target: string) => requestRaw(server.port, "HEAD", target);
  await next();
  for (const target of [`/audio/${token}`, `/audio/${token}`, "/video/x", "/media/x"]) {
    await head(target);
  }
  await until((values) => values.get(series("/video/:token", "4xx", "none")) === 1);
  await next();
  await head(`/audio/${token}`);
  await head(`/audio/${newToken()}`);
  const probe = { "Lifecycle-Probe": "0123456789abcdef" };
  await requestRaw(server.port, "HEAD", `/audio/${token}`, probe); // is no call
  const { log } = await server.stop(); // which exports the last calls

  assertEquals(log.filter(({ event }) => event === "warning"), []);
  assertEquals([...paths], ["/v1/metrics"]);
  assertEquals(texts.filter((text) => text.includes(token)), []);
  const last = [...exports.at(-1) ?? []].filter(([name]) => name.startsWith(REQUESTS));
  assertEquals(Object.fromEntries(last.filter(([, value]) => value > 0).sort()), {
    [series("/audio/:token", "2xx", "breaking")]: 3,
    [series("/audio/:token", "2xx", "none")]: 1,
    [series("/audio/:token", "4xx", "none")]: 1,
    [series("/video/:token", "4xx", "none")]: 1,
  });
  const isRecording = exports.flatMap((values) => values.get("media_head.recording ") ?? []);
  assertEquals([...new Set(isRecording)], [1]);
  const first = [...exports.find(({ size }) => size > 0) ?? []]; // a start can take longer
  assertEquals(first.filter(([name]) => name.startsWith(SUNSET)).sort(), [
    ["media_head.sunset route=/audio/:token", Date.parse("2999-01-01") / 1000],
    ["media_head.sunset route=/video/:token", Date.parse("2999-01-01") / 1000],
  ]);
  // The series of breaking calls are exported from the start, at 0.
  const known = first.filter(([name]) => name.startsWith(REQUESTS));
  assertEquals(known.length, 2 * 2 * 4 * 4); // routes, methods, phases, classes of status
  assertEquals(known.filter(([, value]) => value > 0), []);
});

test("the removal date that is exported moves with a hold", async () => {
  await using subject = await openLocal();
  await using collector = startCollector();
  const day = Math.ceil(Date.now() / 1_000) + 86_400;
  const settings = {
    ...collector.environment,
    SUNSET_AT: new Date(day * 1_000).toISOString(),
  };
  await using server = await ServerProcess.start(settings, subject.folder);
  const sunset = (route: string) => `${SUNSET} route=/${route}/:token`;
  await collector.until((values) => values.get(sunset("audio")) === day);
  const until = (day + 86_400) * 1_000;
  await using opened = await openLedgerIn(subject.folder, openLedgerToChange);
  await opened.ledger.hold({ route: "/audio/:token", until, because: "a test" });
  await collector.until((values) => values.get(sunset("audio")) === until / 1_000);
  await server.stop();
  assertEquals(collector.exports.at(-1)?.get(sunset("video")), day);
});

test("traces have tokens, so a start that exports them says so", async () => {
  await using collector = startCollector();
  const token = newToken();
  await using server = await ServerProcess.start({
    ...collector.environment,
    OTEL_DENO_TRACING: "",
    OTEL_TRACES_EXPORTER: "none", // has no effect
  });
  await requestRaw(server.port, "HEAD", `/audio/${token}`);
  await poll("a trace", () => collector.texts.some((text) => text.includes(token)));
  await collector.next();
  const { log } = await server.stop();
  assertEquals(log.filter(({ event }) => event === "warning").map(({ message }) => message), [
    "Deno exports traces, with the tokens and queries of all requests: set " +
    "OTEL_DENO_TRACING=false to stop that",
  ]);
});

// Only Prometheus can evaluate the rule.
needing("processes", program("promtool"))(
  "the documented alert fires on a server's metrics, even for one call",
  async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1));
    await using collector = startCollector();
    const { exports, until, next, environment } = collector;
    const start = Math.floor(Date.now() / 1000);
    const sunset = new Date((start + 29 * 86_400) * 1000).toISOString();
    for (const calls of [0, 1]) {
      const settings = { ...environment, SUNSET_AT: sunset };
      await using server = await ServerProcess.start(settings, subject.folder);
      await next();
      if (calls > 0) await requestRaw(server.port, "HEAD", `/audio/${token}`);
      const name = series("/audio/:token", "2xx", "breaking");
      await until((values) => values.get(name) === calls);
      await next();
      await server.stop();
    }

    const called = exports.findIndex((values) =>
      values.get(series("/audio/:token", "2xx", "breaking")) === 1
    );
    const names = [...new Set(exports.flatMap((values) => [...values.keys()]))];
    const summary = "/audio/:token is removed in less than 30 days, and still called";
    const alert = { exp_labels: { route: "/audio/:token" }, exp_annotations: { summary } };
    const test = {
      rule_files: ["rules.yaml"],
      evaluation_interval: "1m",
      tests: [{
        interval: "1m", // a minute for each export
        input_series: names.map((name) => ({
          series: prometheusSeries(name),
          // promtool's clock starts at the epoch.
          values: exports.map((values) => values.get(name)).map((value) =>
            value === undefined ? "_" : name.startsWith(SUNSET) ? value - start : value
          ).join(" "),
        })),
        alert_rule_test: [
          { eval_time: `${called - 1}m`, alertname: ALERT, exp_alerts: [] },
          { eval_time: `${called}m`, alertname: ALERT, exp_alerts: [alert] },
          { eval_time: `${exports.length}m`, alertname: NOT_RECORDED, exp_alerts: [] },
        ],
      }, {
        interval: "1m",
        input_series: [{ series: "media_head_recording", values: "1 0 0" }],
        alert_rule_test: [
          { eval_time: "1m", alertname: NOT_RECORDED, exp_alerts: [] },
          { eval_time: "2m", alertname: NOT_RECORDED, exp_alerts: [{ exp_labels: {} }] },
        ],
      }, {
        interval: "1m",
        // Of three servers, one is killed after three minutes, and later the others.
        input_series: ["1x25", "1x15", "1 1 1 stale"].map((values, index) => ({
          series: `media_head_recording{instance="${index}"}`,
          values: values.replace("x", "+0x") + (index < 2 ? " stale" : ""),
        })),
        alert_rule_test: [
          { eval_time: "2m", alertname: MISSING, exp_alerts: [] },
          { eval_time: "9m", alertname: MISSING, exp_alerts: [{ exp_labels: {} }] },
          { eval_time: "35m", alertname: MISSING, exp_alerts: [{ exp_labels: {} }] },
        ],
      }],
    };
    const page = await Deno.readTextFile(fromRoot("lib/usage/README.md"));
    const rule = /```yaml\n(- alert: [^`]*)```/.exec(page)?.[1] ?? "";
    const rules = `groups:\n- name: documented\n  rules:\n${rule.replaceAll(/^/gm, "  ")}`;
    await Deno.writeTextFile(`${subject.folder}/rules.yaml`, rules);
    await Deno.writeTextFile(`${subject.folder}/test.yaml`, JSON.stringify(test));
    await mustRun("promtool", ["test", "rules", "test.yaml"], { cwd: subject.folder });
  },
);

/** A series under its Prometheus name, which includes unit and kind. */
function prometheusSeries(series: string): string {
  const [name = "", labels = ""] = series.split(" ");
  const pairs = labels.split(",").map((label) => label.replace(/=(.*)/, '="$1"'));
  const suffix = name === REQUESTS ? "_total" : name === SUNSET ? "_seconds" : "";
  return `${name.replaceAll(".", "_")}${suffix}{${pairs.join(",")}}`;
}
