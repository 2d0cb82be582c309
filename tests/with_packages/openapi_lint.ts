import { assert, assertEquals } from "@std/assert";
import { describeApi } from "../../lib/documents/openapi.ts";
import { OPEN, POLICY, REDIRECTING } from "../support/notice_pages.ts";
import { needing } from "../support/permissions.ts";
import { ROUTES, underPolicy } from "../support/routes.ts";

// The linter of @redocly/cli as a library: the same rules, without a process for each document.
needing("environment", "files")(
  "the OpenAPI description passes the recommended rules of Redocly's linter",
  async () => {
    // deno-lint-ignore no-import-prefix -- a start would download what the import map has
    const { createConfig, lintFromString } = await import("npm:@redocly/openapi-core@2.64.0"); // reads both
    const config = await createConfig({ extends: ["recommended"] });
    const described = [
      ...[OPEN, POLICY, REDIRECTING].map((policy) => underPolicy(policy)),
      { ...underPolicy(OPEN), contact: "mailto:ops@example.com" },
      { ...underPolicy(OPEN), contact: "https://example.com/help" },
    ];
    for (const each of described) {
      const problems = await lintFromString({ source: describeApi(ROUTES, each), config });
      assertEquals(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`), []);
    }
    const broken = describeApi(ROUTES, underPolicy(OPEN)).replaceAll(
      '"name":"token"',
      '"name":"other"',
    );
    assert((await lintFromString({ source: broken, config })).some((p) => p.severity === "error"));
  },
);
