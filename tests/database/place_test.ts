import { assertEquals, assertThrows } from "@std/assert";
import {
  IN_MEMORY,
  parseDatabaseUrl,
  postgresAt,
  requireDatabaseUrl,
  sqliteAt,
} from "../../lib/database/place.ts";
import { faultIn } from "../../lib/database/postgres_url.ts";
import { WrongUsageError } from "../../lib/errors/refused_error.ts";

Deno.test("parseDatabaseUrl() names the file of SQLite and all beside it, whatever the case of the scheme", () => {
  const beside = (path: string) => ["", "-wal", "-shm", "-journal"].map((end) => path + end);
  const rows: [path: string, access: string][] = [
    ["/x/c.sqlite", "/x/"],
    ["./data/catalogue.sqlite", "./data/"],
    ["c.sqlite", "."],
    ["///x", "///"],
    [":memory:x", "."], // a file
  ];
  for (const [path, access] of rows) {
    const place = {
      ...{ kind: "sqlite", path, ledgerPath: `${path}-ledger`, name: `sqlite:${path}` } as const,
      files: [...beside(path), ...beside(`${path}-ledger`)],
      ...{ access, address: undefined, certificates: [], warning: undefined },
    };
    for (const scheme of ["sqlite", "SQLITE", "SQLite"]) {
      assertEquals(parseDatabaseUrl(`${scheme}:${path}`), place);
    }
  }
  assertEquals(parseDatabaseUrl("sqlite::memory:"), IN_MEMORY);
  const { ledgerPath, files, access } = IN_MEMORY;
  assertEquals([ledgerPath, files, access], [":memory:", [], undefined]);
});

Deno.test("parseDatabaseUrl() names the address, the socket and the certificates of a server", () => {
  const rows: [
    url: string,
    address: string,
    access?: string | undefined,
    certificates?: string[],
  ][] = [
    ["postgres://u:p@h/d", "h:5432"],
    ["Postgres://u:p@h:6432/d?sslmode=require", "h:6432"],
    ["postgres://u:p@[::1]/d", "[::1]:5432"],
    ["postgres://u:p@ignored:1/d?host=db.internal&port=7", "db.internal:7"],
    ["postgres:///d", "localhost:5432"],
    ["POSTGRESQL:///d?host=/run", "unix:/run/.s.PGSQL.5432", "/run/.s.PGSQL.5432"],
    ["postgres://h/d?sslkey=/k&sslrootcert=/r&sslcert=/c", "h:5432", undefined, ["/r", "/c", "/k"]],
  ];
  for (const [url, address, access, certificates = []] of rows) {
    const place = postgresAt(url);
    assertEquals(parseDatabaseUrl(url), place);
    const found = [place.address, place.access, place.certificates, place.files];
    assertEquals<unknown>(found, [address, access, certificates, []], url);
  }
});

const MISSPELT = "postgres://h/d?sslmod=require";

Deno.test("requireDatabaseUrl() says what is wrong with a URL, without its password", () => {
  const expected = 'X: expected "sqlite:PATH" or "postgres://…", got ';
  const rows: [url: string, message: string][] = [
    ["", `${expected}""`],
    ["/x/c.sqlite", `${expected}"/x/c.sqlite"`],
    ["sqlite:", `${expected}"sqlite:"`],
    ["mysql://u:secret@h/d", `${expected}"mysql://…@h/d"`],
    ["sqlite:postgres://u:secret@h/d", `${expected}"…@h/d"`],
    ["postgres://u:secret", `${expected}"postgres://u:…"`],
    ...["jdbc:postgresql://h/d?user=u&password=secret", "JDBC:postgresql://h/d"].map((url) =>
      [
        url,
        `X: the URL is one of a Java driver, by its "${url.slice(0, 5)}"; ` +
        'expected "postgres://USER:PASSWORD@HOST/DATABASE"',
      ] as [string, string]
    ),
    ...["postgresql+psycopg2", "postgres+asyncpg"].map((scheme) =>
      [
        `${scheme}://u:secret@h/d`,
        `X: the URL names a driver of SQLAlchemy, by its "${scheme}://"; ` +
        `expected "${scheme.replace(/\+.*/, "")}://"`,
      ] as [string, string]
    ),
    ...[
      "postgres://u:secret@a,b/d",
      "postgres://a:5432,b:5433/d",
      "postgresql://u:x,y@a:1,b:2,c:3/d?target_session_attrs=read-write",
      "postgres:///d?host=a,b",
    ].map((url) =>
      [
        url,
        "X: the URL names several hosts, and only one can be used; expected the primary, or a name " +
        "or proxy that leads to it",
      ] as [string, string]
    ),
    [
      "postgres://h/d?sslmode=verify-full&sslrootcert=system",
      'X: "sslrootcert=system" is read by libpq only; leave it out: certificates are checked against ' +
      "the usual authorities anyway",
    ],
    ["postgres://u:p#x@h/d", 'X: the URL has an unescaped "#"; write it as "%23"'],
    [MISSPELT, `X: ${faultIn(MISSPELT)}`],
  ];
  for (const [url, message] of rows) {
    const { message: said } = assertThrows(() => requireDatabaseUrl(url, "X"), WrongUsageError);
    assertEquals(said, message, url);
  }
  assertEquals(requireDatabaseUrl("sqlite:x", "X"), sqliteAt("x"));
});
