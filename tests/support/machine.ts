/**
 * A machine of its own for what operators paste as root: in namespaces in which the system's folders
 * are writable copies, and every port is free, so that each path and port of a document can stand as
 * it is printed. systemd does not run there: `systemctl` runs the unit's own command by hand.
 */

import { copyPackages, copyProject } from "./copy.ts";
import { madeOnce } from "./made_once.ts";
import { type Condition, LINUX, type Need, program } from "./permissions.ts";
import { type CommandResult, runProgram } from "./run.ts";
import { within } from "./within.ts";

/** The folders of the system that the documents change. Folders at the top can be added. */
const FOLDERS = ["etc", "opt", "srv", "usr/local", "var/cache", "var/lib"];

/**
 * Makes the machine, says that it is there, and keeps it until its input ends, even if the tests are
 * killed. Then it kills whatever runs there.
 */
const SETUP = `set -e
mount -t tmpfs tmpfs "$0"
mkdir "$0/root"
cd "$0/root"
for entry in /*; do
  if [ -L $entry ]; then cp -a $entry .; elif [ -d $entry ]; then mkdir .$entry && mount --rbind $entry .$entry; fi
done
for folder in ${FOLDERS.join(" ")}; do
  name=$(echo $folder | tr / _)
  mkdir "$0/changed_$name" "$0/work_$name"
  mount -t overlay overlay \\
    -o "lowerdir=/$folder,upperdir=$0/changed_$name,workdir=$0/work_$name" ./$folder
done
ip link set lo up
exec chroot . sh -c '
  echo made
  cat
  for process in $(ls /proc | grep "^[0-9]"); do
    [ "$(readlink /proc/$process/ns/mnt)" != "$(readlink /proc/$$/ns/mnt)" ] ||
      [ $process = $$ ] || kill -KILL $process 2> /dev/null
  done
  true'`;

/** Stands for systemd: starts a unit's command as its user, and waits until the server listens. */
const SYSTEMCTL = `#!/bin/bash
set -e
mkdir -p /srv/instances
unit=/etc/systemd/system/media-head@.service
value() { sed -n "s/^$1=//p" $unit | sed "s|%S|/var/lib|g; s|%i|$instance|g"; }
start() {
  install -d -o "$(value User)" "/var/lib/$(value StateDirectory)"
  cd "$(value WorkingDirectory)"
  rm -f /srv/instances/$instance.log
  setsid runuser -u "$(value User)" -- env -i PATH=/usr/local/bin:/usr/bin:/bin \\
    $(value Environment) sh -c 'umask $0; exec "$@"' "$(value UMask)" $(value ExecStart) \\
    < /dev/null > /dev/null 2> /srv/instances/$instance.log &
  echo $! > /srv/instances/$instance
  until grep -qs '"event":"start"' /srv/instances/$instance.log; do
    kill -0 $! 2> /dev/null || { cat /srv/instances/$instance.log >&2; exit 1; }
    sleep 0.1
  done
}
stop() {
  process=$(cat /srv/instances/$instance) || return 0
  kill $(pgrep -P "$process")
  while kill -0 "$process" 2> /dev/null; do sleep 0.1; done
  rm /srv/instances/$instance
}
command=$1
shift
[[ $1 != --now ]] || shift
[[ $1 != 'media-head@*' ]] || set -- $(ls /srv/instances | grep -v log)
for name; do
  [[ $name != *.timer ]] || continue
  instance=\${name#media-head@}
  case $command in
    enable | start) start ;;
    stop) stop & ;; # together, as systemd does
    restart) stop && start ;;
    is-active) kill -0 "$(cat /srv/instances/$instance)" && echo active ;;
  esac
done
status=$?
[[ $command != stop ]] || wait
exit $status
`;

const NAMESPACES: Condition = {
  what: "root that may make namespaces",
  isMet: () =>
    Deno.uid() === 0 &&
    new Deno.Command("unshare", { args: ["--mount", "--net", "true"] }).outputSync().success,
};

/** What a machine needs. */
export const MACHINE: readonly Need[] = [
  "processes",
  LINUX,
  ...["unshare", "nsenter", "runuser", "ip", "curl"].map(program),
  NAMESPACES,
];

/** Disposing of a machine kills what runs there, and removes it. */
export class Machine implements AsyncDisposable {
  private constructor(
    /** Visible in the machine, too. */
    readonly folder: string,
    private readonly holder: Deno.ChildProcess,
  ) {}

  /**
   * Makes a machine that has Deno, and a checkout at `/opt/media-head`.
   *
   * @param network Whether it has a network of its own; else servers must use free ports.
   */
  static async make(network: "own" | "shared" = "own"): Promise<Machine> {
    const folder = await Deno.makeTempDir({ prefix: "media-head-machine-" });
    await Deno.chmod(folder, 0o755);
    const net = network === "own" ? ["--net"] : [];
    const args = ["--mount", ...net, "bash", "-c", SETUP, `${folder}/changes`];
    await Deno.mkdir(`${folder}/changes`);
    const holder = new Deno.Command("unshare", { args, stdin: "piped", stdout: "piped" }).spawn();
    const machine = new Machine(folder, holder);
    try {
      await machine.#install();
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #install(): Promise<void> {
    const { folder } = this;
    const output = this.holder.stdout.getReader();
    await within("a machine", output.read());
    output.releaseLock();
    await Deno.mkdir(`${folder}/bin`);
    await Deno.symlink(Deno.execPath(), `${folder}/bin/deno`);
    await Deno.writeTextFile(`${folder}/bin/systemctl`, SYSTEMCTL, { mode: 0o755 });
    const made = await madeOnce("machine", async (folder) => {
      copyProject(`${folder}/checkout`);
      await copyPackages(`${folder}/cache/npm`);
    });
    await this.mustRun(
      `cp -r ${made}/checkout /opt/media-head-1 && ln -s media-head-1 /opt/media-head &&
       cp -r ${made}/cache /var/cache/media-head && cp ${folder}/bin/systemctl /usr/local/sbin`,
    );
  }

  /** Writes a file of root's. */
  async write(path: string, text: string): Promise<void> {
    await Deno.writeTextFile(`${this.folder}/text`, text);
    await this.mustRun(`cat ${this.folder}/text > ${path}`);
  }

  /** Runs a script in a new shell of root. */
  async run(script: string): Promise<CommandResult> {
    const { INIT_CWD: _, ...environment } = Deno.env.toObject();
    const system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    const namespaces = ["--target", String(this.holder.pid), "--mount", "--net", "--root"];
    return await runProgram("nsenter", [
      ...namespaces,
      "--wd=/",
      "bash",
      "-e",
      "-c",
      `cd /\n${script}`,
    ], {
      clearEnv: true,
      env: { ...environment, NO_COLOR: "1", PATH: `${system}:${this.folder}/bin` },
    });
  }

  /** Runs a script that must succeed, and returns its output. */
  async mustRun(script: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(script);
    if (code !== 0) throw new Error(`${script}\nended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.holder.stdin.close();
    await this.holder.stdout.cancel();
    await within("the end of a machine", this.holder.status);
    await Deno.remove(this.folder, { recursive: true });
  }
}
