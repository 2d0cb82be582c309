/** The world, over a copy of the record and its verdicts from which a part of the rule is left out. */

import { fromRoot } from "./paths.ts";

/** A change of the code that leaves a part of the rule out. */
export interface LeftOut {
  /** The file, in `lib/usage/`. */
  readonly file: string;
  /** The code of the part. It is there once. */
  readonly code: string;
  /** What replaces it. */
  readonly without: string;
}

/** What is copied. All other modules are shared. */
const FOLDERS = ["lib/usage/record", "lib/usage/verdict"];
const WORLD = ["record_world", "record_truth", "random_world"]
  .map((name) => `tests/support/${name}.ts`);

/** The modules of a world. */
export interface WorldModules {
  readonly world: typeof import("./record_world.ts");
  readonly truth: typeof import("./record_truth.ts");
}

/** Calls an action with the modules of a world from which a part of the rule is left out. */
export async function leavingOut<T>(
  { file, code, without }: LeftOut,
  action: (
    modules: WorldModules & { readonly random: typeof import("./random_world.ts") },
  ) => Promise<T>,
): Promise<T> {
  const folder = await Deno.makeTempDir({ prefix: "media-head-without-" });
  try {
    const files = FOLDERS.flatMap((folder) =>
      [...Deno.readDirSync(fromRoot(folder))].map(({ name }) => `${folder}/${name}`)
    );
    for (const path of [...files, ...WORLD]) {
      let text = await Deno.readTextFile(fromRoot(path));
      if (path === `lib/usage/${file}`) {
        const found = text.split(code).length - 1;
        if (found !== 1) throw new Error(`${path} has ${found} times: ${code}`);
        text = text.replace(code, () => without);
      }
      const shared = text.replaceAll(/(?<=(?:from|import) "|import\(")\.[^"]+/g, (specifier) => {
        const { href, pathname } = new URL(specifier, `file://${fromRoot(path)}`);
        return [...files, ...WORLD].some((copied) => fromRoot(copied) === pathname)
          ? specifier
          : href;
      });
      await Deno.mkdir(`${folder}/${path}`.replace(/[^/]+$/, ""), { recursive: true });
      await Deno.writeTextFile(`${folder}/${path}`, shared);
    }
    const [world, truth, random] = await Promise.all(
      WORLD.map((path) => import(`file://${folder}/${path}`)),
    );
    return await action({ world, truth, random });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
