/** Worlds of processes and ledgers in random trouble. */

import { randomFrom } from "./random.ts";
import { Findings } from "./record_truth.ts";
import {
  DAY,
  type Fate,
  HOUR,
  MINUTE,
  type Process,
  ROUTES,
  SECOND,
  World,
  type WorldDatabase,
  type WorldRecord,
} from "./record_world.ts";

const EVENING = Date.parse("2027-02-01T22:00:00Z");

/** The limit on the clients of one process, which counts only so many new names. */
const MAX_CLIENTS = 300;

/** The limit on the processes that run at once. */
const MAX_PROCESSES = 4;

/** Runs the world of a seed, and returns what was found in it. */
export async function runRandomWorld(
  seed: number,
  databases: readonly WorldDatabase[],
): Promise<Findings> {
  const random = randomFrom(Math.imul(seed, 0x9e37_79b1));
  for (let draw = 0; draw < 10; draw++) random(); // the first ones are alike
  const isDouble = random() < 0.25;
  const start = EVENING + random() * 3 * HOUR;
  using world = await World.open(start, databases.slice(0, isDouble ? 2 : 1));
  return await new RandomWorld(world, random).run();
}

class RandomWorld {
  readonly #world: World;
  readonly #random: () => number;
  readonly #findings = new Findings();
  /** The gates that were asked. */
  readonly #asked: Promise<void>[] = [];
  readonly #clients = new Map<Process, number>();
  readonly #hasRestores: boolean;
  readonly #hasJumps: boolean;
  readonly #hasMounts: boolean;
  /** How likely a process is to run on demand. */
  readonly #onDemand: number;
  readonly #retainDays: number;
  /** Whether processes move to the other record, if there are two; if not, they use both. */
  readonly #isMove: boolean;
  #hasMoved = false;
  #isCalm = false;

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
    this.#hasRestores = this.#isLikely(0.4);
    this.#hasJumps = this.#isLikely(0.2);
    this.#hasMounts = this.#isLikely(0.25);
    this.#onDemand = this.#pick([0, 0, 0, 0, 0, 0, 0, 0.5, 1, 1]);
    this.#retainDays = this.#pick([5, 30, 30]);
    this.#isMove = world.records.length > 1 && this.#isLikely(0.4);
  }

  /** Lets days pass, of which some minutes are full of trouble. In the end, all is well. */
  async run(): Promise<Findings> {
    const world = this.#world;
    this.#start();
    this.#repeat(5 * SECOND, 5 * SECOND, () => this.#start());
    await world.pass(20 * SECOND);
    await world.skip(3 * DAY);
    for (let acts = 3 + this.#random() * 3; acts > 0; acts--) await this.#act();
    this.#isCalm = true;
    this.#startOne();
    await world.pass(15 * MINUTE); // until no write hangs any more
    await this.#check();
    for (const skipped of [0, 50 * HOUR]) {
      await world.skip(skipped);
      this.#repeat(MINUTE, 10 * SECOND, () => this.#gate());
      await world.pass(2 * MINUTE);
    }
    await this.#check();
    await Promise.all(this.#asked);
    this.#findings.record.push(...world.faults);
    return this.#findings;
  }

  /** A few minutes full of trouble, often around midnight, and a pause. */
  async #act(): Promise<void> {
    const world = this.#world;
    const length = (1 + this.#random() * 4) * MINUTE;
    const toMidnight = DAY - world.now % DAY - this.#random() * length;
    if (this.#isLikely(0.25) && toMidnight > 0) await world.skip(toMidnight);
    const troubles = this.#troubles()
      .flatMap(([weight, make]) => Array<() => unknown>(weight).fill(make));
    this.#repeat(length, 20 * SECOND, () => this.#pick(troubles)());
    this.#repeat(length, 15 * SECOND, () => this.#gate());
    const busy = ROUTES.filter(() => this.#isLikely(0.1));
    const callBusy = () => busy.length > 0 && this.#call(this.#one(), this.#pick(busy));
    this.#repeat(length * this.#random(), this.#pick([3, 10, 60]) * SECOND, callBusy);
    await world.pass(length);
    await this.#check();
    this.#startOne();
    await world.pass(10 * SECOND);
    await world.skip(this.#pick([0, 1.5 * MINUTE, 10 * MINUTE, 2 * HOUR, 26 * HOUR, 50 * HOUR]));
  }

  #troubles(): [weight: number, make: () => unknown][] {
    const one = () => this.#one();
    return [
      [6, () => this.#kill(one())],
      [3, () => this.#stop(one())],
      [4, () => one().cut = this.#world.now + this.#pick([2, 20, 100, 600]) * SECOND],
      [2, () => one().freeze(this.#pick([1, 10, 90, 400]) * SECOND)],
      [1, () => this.#sleep(one(), this.#pick([10, 90, 400]))],
      [1, () => this.#killFrozen(one())],
      [1, () => this.#endAll()],
      [2, () => this.#burst(one(), 0.7)],
      [2, () => this.#start()],
      [2, () => this.#startAlone()],
      [this.#hasRestores ? 3 : 0, () => this.#restore()],
      [this.#hasJumps ? 1 : 0, () => this.#jump()],
      [this.#isMove && !this.#hasMoved ? 1 : 0, () => this.#move()],
    ];
  }

  #start(): Process {
    const world = this.#world;
    if (world.alive.length >= MAX_PROCESSES) this.#pick(world.alive).kill();
    const { records } = world;
    const record = this.#isMove ? records[Number(this.#hasMoved)] : this.#pick(records);
    const options = {
      record: record as WorldRecord,
      fate: (process: Process) => this.#fateOf(process),
      onDemand: this.#isLikely(this.#onDemand),
      retainDays: this.#retainDays,
    };
    return this.#hasMounts ? this.#startToMount(options) : world.start(options);
  }

  /** Starts a process that mounts its routes one by one, and serves them before it does. */
  #startToMount(options: Parameters<World["start"]>[0]): Process {
    const omitted = this.#isLikely(0.5) ? this.#pick(ROUTES) : undefined;
    const isUnknown = this.#isLikely(0.5); // the process does not even know the route
    const mounts = ROUTES.filter((route) => route !== omitted || !isUnknown);
    const process = this.#world.start({ ...options, mounts, serves: ROUTES });
    const late = this.#pick([0, 0, 0, 20, 90]) * SECOND;
    for (const route of mounts) {
      if (route === omitted && this.#isLikely(0.5)) continue;
      this.#later(this.#isLikely(0.3) ? late : 0, () => process.mount(route));
    }
    return process;
  }

  /** Starts a process without its ledger. */
  #startAlone(): void {
    const process = this.#start();
    const time = this.#pick([2, 20, 120]) * SECOND;
    process.record.down = this.#world.now + time;
    const call = () => this.#isLikely(0.5) ? this.#burst(process) : this.#call(process);
    this.#later(3 * SECOND, call);
    if (this.#isLikely(0.5)) this.#later(time + this.#random() * 15 * SECOND, () => process.kill());
  }

  #startOne(): void {
    if (this.#world.alive.length === 0) this.#start();
  }

  #kill(process: Process): void {
    if (this.#isLikely(0.5)) this.#call(process);
    this.#later(this.#isLikely(0.5) ? this.#random() * 12 * SECOND : 0, () => process.kill());
    this.#later(this.#pick([1, 3, 10, 40, 90]) * SECOND, () => this.#start());
  }

  #killFrozen(process: Process): void {
    process.freeze(100 * SECOND);
    this.#later(this.#random() * 100 * SECOND, () => process.kill());
  }

  #stop(process: Process): void {
    if (this.#isLikely(0.4)) this.#call(process);
    if (this.#isLikely(0.3)) {
      process.stop({ isListening: true, lingers: this.#random() * 40 * SECOND });
      this.#later(this.#random() * 15 * SECOND, () => this.#call(process));
    } else process.stop();
    this.#later(this.#pick([0, 1, 3, 10, 70]) * SECOND, () => this.#start());
  }

  #sleep(process: Process, seconds: number): void {
    if (isRegistered(process)) process.sleep(seconds * SECOND);
  }

  /** A machine with all processes goes down, or sleeps. */
  #endAll(): void {
    const isDown = this.#isLikely(0.5);
    const seconds = this.#pick([70, 100, 400]);
    for (const process of this.#world.alive) {
      if (isDown) process.kill();
      else this.#sleep(process, seconds);
    }
    if (isDown) this.#later(seconds * SECOND, () => this.#start());
  }

  /** Restores a backup, or fails over to a replica that was behind. */
  async #restore(): Promise<void> {
    const record = this.#pick(this.#world.records);
    await record.save();
    const loss = this.#pick([0.5, 2, 10, 40, 200]) * SECOND;
    this.#later(loss, () => record.restore());
    this.#later(loss * this.#random(), () => this.#call(this.#one()));
    this.#pick([
      () => {},
      () => this.#later(loss + this.#random() * SECOND, () => this.#burst(this.#one())),
      () => { // a process stops meanwhile, and is called afterwards
        const process = this.#one();
        this.#later(loss * this.#random(), () => {
          this.#call(process);
          process.stop({ isListening: true, lingers: loss + MINUTE });
        });
        this.#later(loss + this.#random() * 10 * SECOND, () => this.#call(process));
      },
      () => { // one starts meanwhile, and its machine sleeps
        const process = this.#start();
        this.#later(3 * SECOND, () => this.#call(process));
        this.#later(8 * SECOND, () => this.#sleep(process, this.#pick([10, 70])));
      },
    ])();
  }

  #jump(): void {
    if (!this.#world.alive.every(isRegistered)) return;
    const by = this.#pick([5 * SECOND, 40 * SECOND, 70 * SECOND, 10 * MINUTE, 3 * HOUR]);
    const record = this.#pick(this.#world.records);
    this.#later(0, () => record.jump(this.#isLikely(0.5) ? by : -by));
  }

  #move(): void {
    this.#hasMoved = true;
    for (const process of this.#world.alive) {
      if (this.#isLikely(0.7)) this.#stop(process);
      else this.#kill(process);
    }
  }

  #one(): Process {
    const { alive } = this.#world;
    return alive.length > 0 ? this.#pick(alive) : this.#start();
  }

  #call(process: Process, route: string = this.#pick(ROUTES), lasts?: number): void {
    const clients = (this.#clients.get(process) ?? 0) + 1;
    this.#clients.set(process, clients);
    const time = lasts ?? this.#pick([0, 10, 500, 8 * SECOND, 20 * SECOND]);
    if (clients <= MAX_CLIENTS) process.call(route, time);
  }

  /**
   * Has a process count so much that a heartbeat takes several parts.
   *
   * @param mortality How likely the process is to end on the way.
   */
  #burst(process: Process, mortality = 0): void {
    for (let client = 100 + Math.floor(this.#random() * 100); client > 0; client--) {
      process.call("/f", 0, `many-${client}`);
    }
    for (const route of ROUTES) this.#call(process, route, 0);
    if (!this.#isLikely(mortality)) return;
    const end = () => this.#isLikely(0.7) ? process.kill() : this.#stop(process);
    this.#later(this.#random() * 1.5 * SECOND, end);
  }

  #fateOf({ cut, record }: Process): Fate {
    const [after, { now }] = [(mean: number) => this.#after(mean), this.#world];
    if (this.#isCalm) return { done: after(50), heard: after(20) };
    const isLate = this.#isLikely(0.03);
    const done = after(200) + (isLate ? this.#random() * 3 * MINUTE : 0);
    const end = Math.max(cut, record.down);
    const isHeard = now + done >= end && !this.#isLikely(0.04);
    const hangs = this.#isLikely(0.1) || isHeard && !isLate;
    return {
      done: now < end && this.#isLikely(0.7) ? undefined : done,
      heard: isHeard ? after(50) : undefined,
      broken: hangs ? undefined : after(this.#pick([100, SECOND, 10 * SECOND])),
    };
  }

  #gate(): void {
    const asking = this.#ask().catch((error) => {
      if (error.name === "RefusedError") return; // the clocks of two databases differ
      this.#findings.verdict.push(`the gate: ${error.stack}`);
    });
    this.#asked.push(asking);
  }

  /** Asks the gate. What it has read on both sides of a restore is worth nothing. */
  async #ask(): Promise<void> {
    const restores = () => this.#world.records.reduce((sum, { restores }) => sum + restores, 0);
    const before = restores();
    const answer = await this.#world.ask(this.#pick([1, 1, 1, 2]));
    if (restores() === before) this.#findings.checkAnswer(this.#world, answer);
  }

  async #check(): Promise<void> {
    for (const record of this.#world.records) {
      await this.#findings.checkRecord(record, this.#isCalm);
    }
  }

  #later(time: number, action: () => unknown): void {
    this.#world.events.at(this.#world.now + time, action);
  }

  /** Has something happen again and again, for some time. */
  #repeat(length: number, mean: number, action: () => unknown): void {
    for (let at = this.#after(mean); at < length; at += this.#after(mean)) this.#later(at, action);
  }

  #pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  #isLikely(probability: number): boolean {
    return this.#random() < probability;
  }

  /** Returns a time that is exponentially distributed. */
  #after(mean: number): number {
    return -Math.log(1 - this.#random()) * mean;
  }
}

/**
 * Until a process is registered, nobody knows that its machine slept or that a clock jumped, should
 * its registration be lost.
 */
function isRegistered({ recorder }: Process): boolean {
  return recorder.isRegistered;
}
