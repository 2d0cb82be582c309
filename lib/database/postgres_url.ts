/** What the URL of a PostgreSQL database says, and what nothing would read of it. */

import { quoted } from "../input/printable.ts";

/** The parameters that the driver reads. */
const READ = [
  ...["host", "port", "user", "password", "options", "application_name", "client_encoding"],
  ...["fallback_application_name", "ssl", "sslmode", "sslcert", "sslkey", "sslrootcert"],
  ...["sslnegotiation", "uselibpqcompat", "statement_timeout", "lock_timeout", "query_timeout"],
  ...["idle_in_transaction_session_timeout", "replication", "binary"],
];

/** Parameters by which other programs choose a schema. */
const SCHEMA = ["schema", "search_path", "currentschema"];

/** Parameters of other programs that look like mistyped ones. */
const OTHERS = ["sslcrl"];

/** Parses a URL. Its host may be left out, even after a user, if `host` names a socket. */
export function parsePostgresUrl(text: string): URL | null {
  const valid = [text, text.replace("@/", "@localhost/")].find((form) => URL.canParse(form));
  return valid === undefined ? null : new URL(valid);
}

/** Returns the path of the socket that a URL names, if it names one. */
export function socketIn(text: string): string | undefined {
  const url = parsePostgresUrl(text);
  const folder = folderIn(url);
  const port = url?.searchParams.get("port") ?? url?.port;
  return folder && `${folder}/.s.PGSQL.${port || 5432}`;
}

/** Returns the address that a URL leads to, e.g. `db:5432` or `unix:/run/postgresql/.s.PGSQL.5432`. */
export function addressIn(text: string): string {
  const socket = socketIn(text);
  if (socket !== undefined) return `unix:${socket}`;
  const url = parsePostgresUrl(text);
  const host = url?.searchParams.get("host") ?? url?.hostname;
  return `${host || "localhost"}:${(url?.searchParams.get("port") ?? url?.port) || 5432}`;
}

/** Returns the folder of sockets that is in place of a host. */
function folderIn(url: URL | null): string | undefined {
  const host = url?.searchParams.get("host") ?? url?.hostname.replaceAll(/%2f/gi, "/");
  return host?.startsWith("/") ? host : undefined;
}

/** Returns a URL of the server and the database without credentials, for messages. */
export function placeIn(text: string): string {
  const url = parsePostgresUrl(text);
  const folder = folderIn(url);
  if (folder !== undefined) return `postgres://${url?.pathname}?host=${folder}`;
  return `postgres://${url?.searchParams.get("host") ?? url?.host}${url?.pathname}`;
}

/**
 * Returns what a URL is that other programs read, and this one does not; `undefined` if it is none.
 * The message has no value that may be secret.
 */
export function foreignFormIn(text: string): string | undefined {
  const java = /^(?:jdbc|r2dbc):/i.exec(text)?.[0];
  if (java !== undefined) {
    return `the URL is one of a Java driver, by its ${quoted(java)}; ` +
      'expected "postgres://USER:PASSWORD@HOST/DATABASE"';
  }
  const [driver, scheme] = /^(postgres(?:ql)?)\+[\w.]+:\/\//i.exec(text) ?? [];
  if (driver !== undefined) {
    return `the URL names a driver of SQLAlchemy, by its ${quoted(driver)}; ` +
      `expected "${scheme}://"`;
  }
  const [, authority] = /^postgres(?:ql)?:\/\/(?:[^/?]*@)?([^/?]*)/i.exec(text) ?? [];
  if (authority === undefined) return undefined;
  const parameters = new URLSearchParams(/\?(.*)/s.exec(text)?.[1]);
  if (authority.includes(",") || parameters.get("host")?.includes(",")) {
    return "the URL names several hosts, and only one can be used; expected the primary, or a name " +
      "or proxy that leads to it";
  }
  if (parameters.get("sslrootcert") === "system") {
    return '"sslrootcert=system" is read by libpq only; leave it out: certificates are checked ' +
      "against the usual authorities anyway";
  }
}

/**
 * Returns why a URL would not do what it says; `undefined` if nothing is wrong. The message has no
 * value that may be secret.
 */
export function faultIn(text: string): string | undefined {
  if (text.includes("#")) return 'the URL has an unescaped "#"; write it as "%23"';
  for (const [name, value] of parsePostgresUrl(text)?.searchParams ?? []) {
    if (READ.includes(name) || OTHERS.includes(name)) continue;
    const meant = [...READ, ...SCHEMA].find((other) => isMistyped(name.toLowerCase(), other));
    if (meant === undefined) continue;
    const expected = SCHEMA.includes(meant)
      ? `options=-c%20search_path%3D${encodeURIComponent(value || "NAME")}`
      : meant;
    return `${quoted(name)} in the URL would be ignored; expected ${quoted(expected)}`;
  }
}

/** Returns the first schema of the search path that a URL sets, if it sets one. */
export function schemaIn(text: string): string | undefined {
  const options = parsePostgresUrl(text)?.searchParams.get("options") ?? "";
  const found = /(?:-c\s*|--)search_path\s*=\s*(?:"([^"]+)"|([^\s,"$]+))/.exec(options);
  return found?.[1] ?? found?.[2]?.toLowerCase(); // as PostgreSQL reads names
}

/** Returns a warning about parameters that nothing reads; `undefined` if there are none. */
export function warningIn(text: string): string | undefined {
  const names = [...parsePostgresUrl(text)?.searchParams.keys() ?? []];
  const ignored = [...new Set(names)].filter((name) => !READ.includes(name)).map(quoted);
  return ignored.length === 0 ? undefined : `nothing reads ${ignored.join(", ")} in the URL`;
}

/** Returns whether a name is another with two letters wrong at most, or in another order. */
function isMistyped(name: string, other: string): boolean {
  const sorted = (text: string) => [...text].sort().join("");
  // Two letters are half of a name like "host".
  return distance(name, other) <= (other.length > 4 ? 2 : 1) || sorted(name) === sorted(other);
}

/** Returns how many letters must be added, removed or replaced to make one name of another. */
function distance(name: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const letter of name) {
    const next = [(row[0] as number) + 1];
    for (const [index, expected] of [...other].entries()) {
      const replaced = (row[index] as number) + (letter === expected ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] as number) + 1, (next[index] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}
