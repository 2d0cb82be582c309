import { assertEquals, assertMatch } from "@std/assert";
import { faultIn, parsePostgresUrl, placeIn, warningIn } from "../../lib/database/postgres_url.ts";

const BASE = "postgres://u:p@h.test:5433/db";

Deno.test("faultIn() refuses what would be ignored though it means something, and says what to write", () => {
  const rows: [query: string, message: string][] = [
    ["schema=a", '"schema" in the URL would be ignored; expected "options=-c%20search_path%3Da"'],
    ["sslmode=require&currentSchema=a b", "options=-c%20search_path%3Da%20b"],
    ["search_path=a,b", "options=-c%20search_path%3Da%2Cb"],
    ["schema=", "options=-c%20search_path%3DNAME"],
    ["Schema=a", "options=-c%20search_path%3Da"],
    ["shema=a", "options=-c%20search_path%3Da"],
    ["searchpath=a", "options=-c%20search_path%3Da"],
    ["sslmod=require", '"sslmod" in the URL would be ignored; expected "sslmode"'],
    ["sslMode=require", 'expected "sslmode"'],
    ["SSLMODE=require", 'expected "sslmode"'],
    ["ssl_mode=require", 'expected "sslmode"'],
    ["sslmdoe=require", 'expected "sslmode"'],
    ["ss=true", 'expected "ssl"'],
    ["hots=/run/postgresql", 'expected "host"'],
    ["option=-c%20x%3Dy", 'expected "options"'],
    ["sslrotcert=/a", 'expected "sslrootcert"'],
    ["ApplicationName=a", 'expected "application_name"'],
    ["%73slmod=require", '"sslmod" in the URL'],
  ];
  for (const [query, message] of rows) {
    const fault = faultIn(`${BASE}?${query}`) ?? "";
    assertEquals(fault.includes(message), true, `${query}: ${fault}`);
    assertEquals(faultIn(`postgres://u:p@/db?${query}`), fault, "without a host");
  }
});

Deno.test("faultIn() accepts what platforms and other programs write, and warningIn() names it", () => {
  const rows: [query: string, ignored: string[]][] = [
    ["", []],
    ["?sslmode=require&options=-c%20search_path%3Da&application_name=b", []],
    ["?sslmode=require&channel_binding=require", ["channel_binding"]], // Neon
    ["?sslmode=require&options=endpoint%3Dep-a-1", []],
    ["?pgbouncer=true&connection_limit=1", ["pgbouncer", "connection_limit"]], // Supabase
    [
      "?connect_timeout=15&pool_timeout=0&socket_timeout=3&sslaccept=strict", // Prisma
      ["connect_timeout", "pool_timeout", "socket_timeout", "sslaccept"],
    ],
    ["?statement_cache_size=0&sslidentity=a&sslpassword=b", [
      ...["statement_cache_size", "sslidentity", "sslpassword"],
    ]],
    ["?sslmode=require&supa=base-pooler.x&pool=1", ["supa", "pool"]],
    [
      "?target_session_attrs=read-write&gssencmode=disable&sslcrl=a&sslsni=1&sslcertmode=allow",
      ["target_session_attrs", "gssencmode", "sslcrl", "sslsni", "sslcertmode"], // libpq
    ],
    ["?hostaddr=1.2.3.4&dbname=a&passfile=b&service=c&keepalives=1", [
      ...["hostaddr", "dbname", "passfile", "service", "keepalives"],
    ]],
    ["?binary_parameters=yes&a=1&a=2", ["binary_parameters", "a"]],
  ];
  for (const [query, ignored] of rows) {
    assertEquals(faultIn(BASE + query), undefined);
    const names = ignored.map((name) => `"${name}"`).join(", ");
    const warning = ignored.length === 0 ? undefined : `nothing reads ${names} in the URL`;
    assertEquals(warningIn(BASE + query), warning);
  }
});

Deno.test("placeIn() names server and database without credentials", () => {
  const rows: [url: string, place: string][] = [
    [`${BASE}?password=secret`, "postgres://h.test:5433/db"],
    ["postgresql://h", "postgres://h"],
    ["postgresql://u:p@/db?host=/run/postgresql&x=y", "postgres:///db?host=/run/postgresql"],
    ["postgres:///db?host=/run/a:b", "postgres:///db?host=/run/a:b"],
    ["postgres://u:p@%2Frun%2Fpostgresql/db", "postgres:///db?host=/run/postgresql"],
    ["postgres://u:p@%zz/db", "postgres://%zz/db"],
    ["postgres://u:p@/db", "postgres://localhost/db"],
  ];
  for (const [url, place] of rows) assertEquals(placeIn(url), place);
  assertMatch(parsePostgresUrl("postgres://u@/db")?.href ?? "", /^postgres:\/\/u@localhost\/db$/);
});
