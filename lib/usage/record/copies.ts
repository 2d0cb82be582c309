/**
 * What a ledger takes over of older records: see `usage/moving`. Each part of a copy is one
 * transaction that also moves the copy's position, so it is recorded once, whoever sends it.
 */

import { chunksOf, type Database, type Statement } from "../../database/sql/database.ts";
import { additionOf, type ClientDay, daysAdditionOf, jsonOf } from "./additions.ts";
import type { RecordedHold } from "./holds.ts";
import type { Intent, Session, UsageRow } from "./records.ts";

/** A copy of an older record. */
export interface Copy {
  readonly id: string;
  /** How far the copy has come, as whoever makes it has written it down; `FIRST` until it is claimed. */
  readonly position: string;
  /** When it was completed, in milliseconds since the epoch. */
  readonly completed: number | undefined;
}

/** The position of a copy that has begun. */
export const FIRST = "";

const UNDER_WAY =
  `SELECT id FROM media_head_copy WHERE completed IS NULL AND position <> '${FIRST}'`;

export interface CopyPart {
  readonly intents?: readonly Intent[];
  readonly sessions?: readonly Session[];
  readonly holds?: readonly RecordedHold[];
  /** Rows with distinct keys. */
  readonly rows?: readonly UsageRow[];
  /** Days with distinct keys. */
  readonly days?: readonly ClientDay[];
}

/** The copies into a ledger. Every method throws {@linkcode StorageError} if the engine fails. */
export class Copies {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns a copy, if there is one with that id. */
  async find(id: string): Promise<Copy | undefined> {
    const text = "SELECT id, position, completed FROM media_head_copy WHERE id = $1";
    const [row] = await this.#database.query({ text, values: [id] });
    if (row === undefined) return undefined;
    return {
      id,
      position: row["position"] as string,
      completed: row["completed"] as number | null ?? undefined,
    };
  }

  /** Begins a copy. This is on disk before the older record is closed. */
  async begin(id: string): Promise<void> {
    const text = "INSERT INTO media_head_copy (id, position) VALUES ($1, $2)";
    await this.#database.transact([{ text, values: [id, FIRST] }], { isSynced: true });
  }

  /** Returns whether a copy was claimed, but is not complete. */
  async isAnyUnderWay(): Promise<boolean> {
    return (await this.#database.query({ text: UNDER_WAY })).length > 0;
  }

  /**
   * Moves a copy that has begun to another position, unless another one is under way: what each part
   * adds depends on what is on record, so that copies are made one after another.
   *
   * @returns Whether the copy was moved.
   */
  async claim({ id }: Copy, to: string): Promise<boolean> {
    const [, moved] = await this.#database.transact([
      { text: "UPDATE media_head_ledger SET schema = schema" }, // one command at a time
      {
        text: `UPDATE media_head_copy SET position = $2
               WHERE id = $1 AND position = '${FIRST}' AND NOT EXISTS (${UNDER_WAY}) RETURNING id`,
        values: [id, to],
      },
    ]);
    return moved?.length === 1;
  }

  /** Forgets a copy that closed no record. */
  async forget(id: string): Promise<void> {
    const text = "DELETE FROM media_head_copy WHERE id = $1";
    await this.#database.transact([{ text, values: [id] }]);
  }

  /**
   * Records a part, and moves the copy to another position.
   *
   * @returns Whether it was recorded. It is not if the copy has another position than it was given:
   *   another command makes it, too.
   */
  async add({ id, position }: Copy, part: CopyPart, to: string): Promise<boolean> {
    const { intents = [], sessions = [], holds = [], rows = [], days = [] } = part;
    const { batch } = this.#database;
    const moving: Statement = {
      text: `UPDATE media_head_copy SET position = $3
             WHERE id = $1 AND position = $2 AND completed IS NULL RETURNING id`,
      values: [id, position, to],
    };
    const statements = [
      moving,
      ...intents.map(intentInsertion),
      ...sessions.map(sessionInsertion),
      ...holds.map(holdInsertion),
      ...chunksOf(rows, batch).map((some) => additionOf(this.#database, some)),
      ...chunksOf(days, batch).map((some) => daysAdditionOf(this.#database, some)),
    ];
    const [moved] = await this.#database.transact(statements, { isConditional: true });
    return moved?.length === 1;
  }

  /**
   * Completes a copy: from now on, the record starts at another instant.
   *
   * @param found The start of the record that the other one was derived from.
   * @returns Whether it was completed. It was not if the start is another by now.
   */
  async complete(
    { id }: Copy,
    { found, started, now }: {
      readonly found: number | undefined;
      readonly started: number;
      readonly now: number;
    },
  ): Promise<boolean> {
    const isFound = found === undefined ? "started IS NULL" : "started = $3";
    const [moved] = await this.#database.transact([
      {
        text: `UPDATE media_head_ledger SET started = $1 WHERE ${isFound} AND EXISTS (
                 SELECT id FROM media_head_copy WHERE id = $2 AND completed IS NULL) RETURNING id`,
        values: [started, id, ...found === undefined ? [] : [found]],
      },
      {
        text: "UPDATE media_head_copy SET completed = $2 WHERE id = $1 AND completed IS NULL",
        values: [id, now],
      },
    ], { isConditional: true, isSynced: true });
    return moved?.length === 1;
  }
}

function intentInsertion({ id, session, route, since, until, settled }: Intent): Statement {
  return {
    text: `INSERT INTO media_head_intent (id, session, sequence, route, since, until, settled)
           VALUES ($1, $2, 0, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`,
    values: [id, session, route, since, until, settled ?? null],
  };
}

function sessionInsertion(session: Session): Statement {
  const { id, policies, unmounted, extensions, process, ...rest } = session;
  const { mayServeUnrecorded = false, publicUrl, contact, retainDays, ...times } = rest;
  const { began, reported, timeline, sequence, ended } = times;
  return {
    text:
      `INSERT INTO media_head_session (id, policies, unmounted, extensions, may_serve_unrecorded,
             public_url, contact, retain_days, machine, pid, process_started, began, reported,
             timeline, sequence, ended)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
           ON CONFLICT (id) DO NOTHING`,
    values: [
      id,
      JSON.stringify(policies),
      jsonOf(unmounted),
      jsonOf(extensions),
      Number(mayServeUnrecorded),
      publicUrl ?? null,
      contact ?? null,
      retainDays,
      process.machine ?? null,
      process.pid,
      process.started,
      began,
      reported,
      timeline,
      sequence,
      ended ?? null,
    ],
  };
}

function holdInsertion(hold: RecordedHold): Statement {
  const { id, route, since, until, released, because } = hold;
  return {
    text: `INSERT INTO media_head_hold (id, route, since, until, released, because)
           VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`,
    values: [id, route ?? null, since, until, released ?? null, because],
  };
}
