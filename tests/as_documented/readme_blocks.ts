/** README's blocks, pasted in order on a machine that has Node, but not Deno. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { copy, copyProject } from "../support/copy.ts";
import { inFolder } from "../support/media_cli.ts";
import { NPM } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { isFile, LINUX, needing, pathOf, program } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { within } from "../support/within.ts";

/** What is typed, and what README says that it prints. */
interface Block {
  readonly typed: string;
  readonly printed: string;
}

/** The blocks of commands: those that only have commands, and those that show a terminal. */
function blocksIn(page: string): Block[] {
  return [...page.matchAll(/^```(sh|console)\n(.*?)^```/gms)].map(([, kind, text = ""]) => {
    if (kind === "sh") return { typed: text, printed: "" };
    const lines = text.split("\n");
    const typed = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    const printed = lines.filter((line) => !line.startsWith("$ "));
    return { typed: typed.join("\n"), printed: printed.join("\n") };
  });
}

/** The lines of an output, with nothing that differs from one run to the next. */
function shapesOf(output: string): string[] {
  return output.split(/\r?\n/).filter((line) => line !== "").map((line) =>
    line.replaceAll(/\b[\da-f]{8}-[\da-f-]{27}\b/g, "UUID").replaceAll(/\b[\da-f]{64}\b/g, "DIGEST")
      .replaceAll(/\b[A-Z][a-z]{2}(?=, \d)|\b[A-Z][a-z]{2}(?= \d{4})/g, "NAME")
      .replaceAll(/\d+/g, "0")
  );
}

/** The folders of a path without Deno, after one with Node's programs. */
async function pathWithoutDeno(folder: string): Promise<string> {
  await Deno.mkdir(folder);
  for (const name of ["node", "npm", "npx"]) {
    await Deno.symlink(pathOf(name) ?? "", `${folder}/${name}`);
  }
  const others = (Deno.env.get("PATH") ?? "").split(":").filter((each) => !isFile(`${each}/deno`));
  return [folder, ...others].join(":");
}

/** A terminal: a shell for each block, with the aliases of the blocks before. */
class Terminal {
  #aliases = "";

  constructor(private readonly options: Deno.CommandOptions) {}

  #shell(text: string): Deno.Command {
    const args = ["bash", "-O", "expand_aliases", "-c", `${this.#aliases}${text}`];
    return new Deno.Command("setsid", { ...this.options, args }); // whose group a signal reaches
  }

  /** Runs a block to its end. */
  async run({ typed }: Block): Promise<{ code: number; stdout: string; stderr: string }> {
    if (typed.startsWith("alias ")) this.#aliases += typed;
    const ended = this.#shell(`set -e\n${typed}`).output();
    const { code, stdout, stderr } = await within(`the end of ${typed}`, ended, {
      timeout: 300_000,
    });
    const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, stdout: decode(stdout), stderr: decode(stderr) };
  }

  /** Starts a server or the demo, and returns what ends it as Ctrl-C does. */
  async serve({ typed }: Block): Promise<() => Promise<void>> {
    const child = this.#shell(`{ ${typed.trimEnd()}\n} 2>&1`).spawn();
    child.stderr.cancel();
    let log = "";
    const started = Promise.withResolvers<void>();
    const logged = (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        log += text;
        if (/"event":"start"|until you press Ctrl-C/.test(log)) started.resolve();
      }
      started.reject(new Error(`It did not start:\n${typed}\n${log}`));
    })();
    const stop = async () => {
      await new Deno.Command("kill", { args: ["-INT", "--", `-${child.pid}`] }).output();
      await within(`the end of ${typed}`, Promise.all([child.status, logged]));
      if (log.includes('"event":"start"')) assertMatch(log, /"event":"stop"/);
    };
    await within(`the start of ${typed}`, started.promise, { timeout: 300_000 });
    return stop;
  }
}

needing(...NPM, LINUX, program("npx"), program("curl"))(
  "README's blocks can be pasted in order where Deno is not installed",
  () =>
    inFolder(async (folder) => {
      const [root, media, port] = [`${folder}/checkout`, `${folder}/media`, freePort()];
      copyProject(root);
      copy(fromRoot("tests"), `${root}/tests`);
      const page = (await Deno.readTextFile(fromRoot("README.md")))
        .replaceAll("0.0.0.0:8000", `127.0.0.1:${port}`)
        .replaceAll(":8000", `:${port}`)
        .replaceAll("/srv/media", media)
        .replaceAll("on web-1", `on ${Deno.hostname()}`);
      const { INIT_CWD: _, ...environment } = Deno.env.toObject();
      const terminal = new Terminal({
        cwd: root,
        clearEnv: true,
        env: {
          ...environment,
          ...{ HOST: "127.0.0.1", PORT: String(port), NO_COLOR: "1" },
          PATH: await pathWithoutDeno(`${folder}/bin`),
        },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      });
      const none = await terminal.run({ typed: "command -v deno", printed: "" });
      assertEquals([none.code, none.stdout], [1, ""]);

      const blocks = blocksIn(page);
      let stop = () => Promise.resolve();
      try {
        for (const block of blocks) {
          if (/ task demo$/m.test(block.typed)) {
            const stopDemo = await terminal.serve(block);
            await stopDemo();
            continue;
          }
          if (/ task start$| main\.ts$/m.test(block.typed)) {
            await stop();
            stop = await terminal.serve(block);
            continue;
          }
          const { code, stdout, stderr } = await terminal.run(block);
          const isCalled = block.typed.includes("--gate"); // which exits with its verdict
          assertEquals(code, isCalled ? 1 : 0, `${block.typed}\n${stdout}\n${stderr}`);
          const errors = shapesOf(stderr);
          const expected = shapesOf(block.printed).filter((line) => !errors.includes(line));
          assertEquals(shapesOf(stdout), expected, block.typed);
        }
      } finally {
        await stop();
      }
      const count = blocks.length;
      assert(count > 4, `only ${count} blocks are seen`);
    }),
);
