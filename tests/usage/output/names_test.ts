import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { isPrintable } from "../../../lib/input/printable.ts";
import { escape } from "../../../lib/pages/html.ts";
import { ownerPage } from "../../../lib/usage/output/owner_page.ts";
import { usagePage, usageText } from "../../support/usage_outputs.ts";
import { POLICY, read, report, row, running, session } from "../../support/usage_report.ts";

/** Names that look like what sentences are made of. */
const NAMES = [
  "app a`b",
  "app `curl`",
  "id 2027-01-31",
  "id 2027-01-31T12:00:00Z",
  "id /v1/:alpha",
  "id a, and 3 more clients",
  "id <b>&amp;</b>",
];

/** Routes of an application, whose names need not be paths. */
const ROUTES = ["team/:alpha", "GET 2027-01-31", "field `User.name`", "/v1/:id"];

/** Returns the names as a page shows them, where a route that is a path is shown for people. */
const shown = (name: string) => escape(name === "/v1/:id" ? "/v1/{id}" : name);

/** Returns the dates and the code on a page. */
function formattedIn(page: string): string[] {
  const main = page.slice(page.indexOf("<main>"));
  return [...main.matchAll(/<time datetime="([^"]*)"|<code>(.*?)<\/code>/g)]
    .map(([, date = "", code = ""]) => date + code);
}

/** Returns a page with the names replaced by what looks like nothing else. */
function withoutNames(page: string, names: readonly string[]): string {
  return names.toSorted((a, b) => b.length - a.length)
    .reduce((text, name) => text.replaceAll(shown(name), "…"), page);
}

for (const state of ["called", "unknown"] as const) {
  Deno.test(`no name changes how a page shows the verdict: ${state}`, async () => {
    const made = (names: readonly string[], routes: readonly string[]) => {
      const policies = Object.fromEntries(routes.map((route) => [route, POLICY]));
      const rows = names.map((name, at) =>
        row(at + 1, name, 9 - at, { route: routes[at % 4] as string })
      );
      const silent = session(500, 400, { id: "b", policies });
      const sessions = [running(1000, { policies }), silent];
      return state === "called"
        ? report(rows, sessions, { ignore: names.slice(0, 1) })
        : report(rows, sessions.slice(1), { ignore: names });
    };
    const odd = await made(NAMES, ROUTES);
    const plainNames = NAMES.map((_, at) => `app plain${at}`);
    const plainRoutes = ROUTES.map((_, at) => `/plain${at}`);
    const plain = await made(plainNames, plainRoutes);
    assertEquals(odd.state, state);
    assertEquals(
      formattedIn(withoutNames(usagePage(odd), [...NAMES, ...ROUTES])),
      formattedIn(withoutNames(usagePage(plain), [...plainNames, ...plainRoutes])),
    );
    for (const name of [...NAMES.slice(1), ...ROUTES]) {
      assertStringIncludes(usagePage(odd), shown(name));
      assertStringIncludes(usageText(odd), name);
    }
  });
}

Deno.test("no name puts control characters on a page", async () => {
  const [client, route] = ["id \x1b[31m\x9b31m\u2028", "/v1\x07"];
  const sessions = [running(1000, { policies: { [route]: POLICY } })];
  const all = await report([row(1, client, 5, { route })], sessions);
  const one = await report([row(1, client, 5, { route })], sessions, { client });
  for (const page of [usagePage(all), ownerPage(one, { sessions: sessions.map(read) })]) {
    assertStringIncludes(page, "\\u001b[31m\\u009b31m\\u2028");
    assert(isPrintable(page.replaceAll("\n", "")));
  }
});

Deno.test("no name changes how an owner's page shows calls", async () => {
  for (const client of NAMES) {
    const policies = { "team/:alpha": POLICY };
    const made = (client: string) =>
      report([row(1, client, 5, { route: "team/:alpha", release: "2027-01-31" })], [
        running(1000, { policies }),
      ], { client });
    const sessions = [read(running(1000, { policies }))];
    const page = ownerPage(await made(client), { sessions });
    const plain = ownerPage(await made("id key"), { sessions });
    assertEquals(formattedIn(page), formattedIn(plain));
    assertStringIncludes(page, "<code>team/:alpha</code>");
    assertStringIncludes(page, "<li>2027-01-31: 5 calls, ");
  }
});
