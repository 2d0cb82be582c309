/** The class of connections to PostgreSQL. */

import { valueText } from "../../lifecycle/any_value.ts";
import type { OpenOptions } from "../open_options.ts";
import type { Driver } from "./driver.ts";

export interface PostgresOptions extends OpenOptions {
  /** Returns the password for a connection, in place of the URL's. */
  readonly password?: (() => string | Promise<string>) | undefined;
  /**
   * Whether nobody waits for the database: then there is one connection, without timeouts, and a
   * transaction waits for no standby unless it is synced.
   */
  readonly isPatient?: boolean | undefined;
}

/**
 * Returns the driver's class of connections, except that one which cannot be established ends.
 * Otherwise it would stay open, and keep the process running, until PostgreSQL ends it a minute later.
 */
export function clientOf({ Client }: Driver, options: PostgresOptions): Driver["Client"] {
  const { password } = options;
  return class extends Client {
    constructor(config?: ConstructorParameters<typeof Client>[0]) {
      super(config);
      // Not the pool's own `password`: that of the URL would replace it, even where it is empty.
      if (password !== undefined) Object.assign(this, { password: () => passwordFrom(password) });
      // The pool passes a callback.
      const connect = (done: (error?: Error) => void) =>
        super.connect((error: Error) => {
          if (error) this.end();
          done(error && explained(error, options.setting));
        });
      Object.assign(this, { connect });
    }
  };
}

/**
 * Asks for a password. Rejects with an error of its own in any case, because the driver expects one
 * that can be read.
 */
async function passwordFrom(option: () => string | Promise<string>): Promise<string> {
  let password: unknown;
  try {
    password = await option();
  } catch (reason) {
    throw new Error(`the option password failed: ${valueText(reason)}`, { cause: reason });
  }
  if (typeof password === "string" && password !== "") return password;
  const got = password === "" ? "an empty one" : typeof password;
  throw new TypeError(`password: expected a function that returns the password, got ${got}`);
}

/** Says what to set if there is no password. Returns any other error as it is. */
function explained(error: Error, setting: string | undefined): Error {
  if (!/client password must be a/.test(error.message)) return error;
  // Without a setting, this is the media server, which reads no PGPASSWORD.
  const remedy = setting === undefined ? "write one in DATABASE_URL" : "set PGPASSWORD";
  return new Error(`it asks for a password: ${remedy}`, { cause: error });
}
