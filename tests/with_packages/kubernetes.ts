// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has
/** The manifest of README's Deployment, against Kubernetes' own schema. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";

needing("environment", "files", "processes")(
  "README's Deployment is valid, and has no field that Kubernetes does not know",
  async () => {
    const { Deployment } = await import("npm:kubernetes-models@5.1.0/apps/v1/Deployment");
    const { parse } = await import("npm:yaml@2.9.1");
    const page = await Deno.readTextFile(fromRoot("lib/server/README.md"));
    const [, text = ""] = /^```yaml\n(.*?)^```/ms.exec(page) ?? [];
    const validate = (yaml: string) => new Deployment(parse(yaml) as never).validate();
    validate(text);
    const named = text.replace("containerPort: 8000", "containerPort: http");
    assertThrows(() => validate(named), Error, "containerPort must be integer");

    // The schema accepts fields that it does not know; the types of the same package do not.
    const isKnown = async (yaml: string) => {
      const folder = await Deno.makeTempDir({ prefix: "media-head-" });
      try {
        const literal = JSON.stringify(parse(yaml));
        const module = "npm:kubernetes-models@5.1.0/apps/v1/Deployment";
        const text =
          `import type { IDeployment } from "${module}";\nconst deployment: IDeployment = `;
        await Deno.writeTextFile(`${folder}/a.ts`, `${text}${literal};\nexport { deployment };\n`);
        const lock = `--lock=${fromRoot("tests/deno.lock")}`;
        const { success, stderr } = await new Deno.Command(Deno.execPath(), {
          args: ["check", "--no-config", lock, "--frozen", `${folder}/a.ts`],
        }).output();
        return success ? "" : new TextDecoder().decode(stderr);
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    };
    assertEquals(await isKnown(text), "");
    const mistyped = await isKnown(text.replace("readinessProbe", "readinesProbe"));
    assert(mistyped.includes("does not exist in type 'IContainer'"), mistyped);
  },
);
