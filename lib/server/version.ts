/** The version of this release. */

import project from "../../deno.json" with { type: "json" };

export const VERSION = project.version;
