/** A file system of a few kilobytes, for tests of full disks and of those that may not be written. */

import { type Condition, LINUX, type Need, program } from "./permissions.ts";
import { mustRun } from "./run.ts";

const MAY_MOUNT: Condition = {
  what: "root that may mount",
  isMet: () =>
    Deno.uid() === 0 &&
    new Deno.Command("unshare", { args: ["--mount", "true"] }).outputSync().success,
};

/** What a disk needs. */
export const DISK: readonly Need[] = [
  "processes",
  LINUX,
  ...["unshare", "mount", "umount"].map(program),
  MAY_MOUNT,
];

/** Disposing of a disk removes it. */
export class SmallDisk implements AsyncDisposable {
  private constructor(readonly folder: string) {}

  static async mount(kilobytes: number): Promise<SmallDisk> {
    const folder = await Deno.makeTempDir({ prefix: "media-head-disk-" });
    await mustRun("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k`, "tmpfs", folder]);
    return new SmallDisk(folder);
  }

  async makeReadOnly(): Promise<void> {
    await mustRun("mount", ["-o", "remount,ro", this.folder]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A program that another test starts has all open files until it is executed.
    await mustRun("umount", ["--lazy", this.folder]);
    await Deno.remove(this.folder);
  }
}
