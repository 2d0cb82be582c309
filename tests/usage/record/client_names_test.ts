import { assertEquals } from "@std/assert";
import { OTHER } from "../../../lib/lifecycle/user_agent.ts";
import {
  callerOf,
  ClientNames,
  MAX_NEW_NAMES_A_DAY,
  MAX_PROBES_A_DAY,
  MAX_RELEASES,
  MAX_RELEASES_OF_CLIENT,
  OTHER_PROBES,
} from "../../../lib/usage/record/client_names.ts";

const [TODAY, TOMORROW] = ["2027-01-31", "2027-02-01"];

const invented = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

Deno.test("callerOf() names a probe, else the id, else the site of a browser, with the app", () => {
  const browser = { "User-Agent": "Mozilla/5.0 (X11)" };
  const uuid = "7f9c24e8-3b12-4fef-91e0-56a2d5a7bb2e";
  const probe = "0123456789abcdef";
  const rows: [fields: Record<string, string>, client: string, release?: string][] = [
    [{}, "(no User-Agent)"],
    [{ "User-Agent": "okhttp/4" }, "app okhttp", "4"],
    [{ "User-Agent": uuid }, "(other)"],
    [{ "User-Agent": "okhttp/4", Origin: "https://a.test" }, "app okhttp", "4"],
    [browser, "app Mozilla", "5.0"],
    [{ ...browser, Origin: "https://A.example.com:8443" }, "site a.example.com", "Mozilla"],
    [{ ...browser, Origin: "null", Referer: "https://a.test/x?q=1#y" }, "site a.test", "Mozilla"],
    [{ ...browser, Referer: `https://b.test/${uuid}` }, "site b.test", "Mozilla"],
    [{ ...browser, Origin: "https://a.test", Referer: "https://b/" }, "site a.test", "Mozilla"],
    [{ "User-Agent": "Mozilla/5.0 Pod/3.1", Origin: "https://a.test" }, "site a.test", "Pod"],
    [{ ...browser, Referer: `https://${uuid}.test/` }, "(other)"],
    [{ ...browser, Origin: "https://user-491511.test" }, "(other)"],
    [{ ...browser, Referer: "https://192.0.2.1/x" }, "app Mozilla", "5.0"],
    [{ ...browser, Referer: "https://[2001:db8::1]/" }, "app Mozilla", "5.0"],
    [{ ...browser, Referer: "https://user:pass@a.test/" }, "app Mozilla", "5.0"],
    [{ ...browser, Referer: `https://${"a".repeat(76)}/` }, "app Mozilla", "5.0"],
    [{ ...browser, Referer: "file:///home/jane" }, "app Mozilla", "5.0"],
    [{ ...browser, Origin: "https://<b>" }, "app Mozilla", "5.0"],
    [{ "X-Consumer": "Team 7", "User-Agent": "okhttp/4" }, "id Team 7", "okhttp"],
    [{ "X-Consumer": "Team 7", "User-Agent": uuid }, "id Team 7"],
    [{ "X-Consumer": uuid }, `id ${uuid}`],
    [{ "X-Consumer": "a".repeat(65), "User-Agent": "okhttp/4" }, "(other)"],
    [{ "X-Consumer": "ünï" }, "(other)"],
    [{ "X-Consumer": "", "User-Agent": "okhttp/4" }, "(other)"],
    [{ "Lifecycle-Probe": probe }, `probe ${probe}`],
    [{ "Lifecycle-Probe": probe, "User-Agent": "media-head-check" }, `probe ${probe}`],
    [{ "Lifecycle-Probe": probe, "X-Consumer": "a" }, `probe ${probe}`],
    [{ "Lifecycle-Probe": probe.toUpperCase() }, OTHER_PROBES],
    [{ "Lifecycle-Probe": `${probe}0` }, OTHER_PROBES],
    [{ "Lifecycle-Probe": "" }, OTHER_PROBES],
    [{ "User-Agent": "media-head-check" }, "probe media-head-check"],
    [{ "User-Agent": "media-head-check/1" }, "app media-head-check", "1"],
  ];
  for (const [fields, name, release] of rows) {
    const caller = callerOf(new Headers(fields), fields["X-Consumer"]);
    assertEquals([caller.name, caller.release], [name, release], JSON.stringify(fields));
  }
});

Deno.test("ClientNames admits 500 new names a day, and known ones on every day", () => {
  const names = new ClientNames();
  const admitted = (asked: string[]) => asked.filter((name) => names.nameFor(name) === name);
  names.beginDay(TODAY);
  assertEquals(admitted(invented(400, "a")).length, 400);
  assertEquals(admitted(invented(400, "b")).length, 100);
  names.know("known");
  assertEquals(admitted(["c", "known", "a-0", "(no User-Agent)"]).length, 3);
  assertEquals(names.nameFor("c"), OTHER);
  names.beginDay(TODAY);
  assertEquals(names.nameFor("c"), OTHER, "on the same day");
  names.beginDay(TOMORROW);
  assertEquals(admitted(["c", "a-0"]), ["c", "a-0"]);
  assertEquals(admitted(invented(600, "d")).length, 499);
});

Deno.test("ClientNames admits so many releases a day, of one client and in all", () => {
  const names = new ClientNames();
  names.beginDay(TODAY);
  const admitted = (client: string, asked: string[]) =>
    asked.filter((release) => names.releaseFor(client, release) === release).length;
  const releases = invented(MAX_RELEASES_OF_CLIENT + 5, "1");
  const clients = invented(MAX_RELEASES / MAX_RELEASES_OF_CLIENT, "app");
  for (const client of clients) {
    assertEquals(admitted(client, releases), MAX_RELEASES_OF_CLIENT, client);
  }
  assertEquals(admitted("one more", releases), 0);
  assertEquals(names.releaseFor("app-0", "1-0"), "1-0", "admitted before");
  names.beginDay(TOMORROW);
  assertEquals(admitted("one more", releases), MAX_RELEASES_OF_CLIENT);
});

Deno.test("ClientNames admits so many probes a day, beside the names of clients", () => {
  const names = new ClientNames();
  names.beginDay(TODAY);
  const probes = invented(MAX_PROBES_A_DAY + 5, "probe");
  const counted = new Set(probes.map((name) => names.probeFor(name)));
  assertEquals(counted, new Set([...probes.slice(0, MAX_PROBES_A_DAY), OTHER_PROBES]));
  assertEquals(names.probeFor("probe media-head-check"), "probe media-head-check");
  const clients = invented(MAX_NEW_NAMES_A_DAY, "a");
  assertEquals(clients.map((name) => names.nameFor(name)), clients);
  assertEquals(names.probeFor("probe-24"), OTHER_PROBES, "on the same day");
  names.beginDay(TOMORROW);
  assertEquals(names.probeFor("probe-24"), "probe-24");
});
