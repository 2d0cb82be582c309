/** Programs that end with the tests. */

import { pathOf } from "./permissions.ts";

/**
 * Returns the words of a command that is killed when the thread of its test file ends, however that
 * happens. Only Linux can do that.
 */
export function endingWithTests(words: readonly string[]): readonly string[] {
  const setpriv = pathOf("setpriv");
  return setpriv === undefined ? words : [setpriv, "--pdeathsig=KILL", ...words];
}

/**
 * A shell script that runs the command of its arguments until the end of its own input, which comes
 * even if the tests are killed. A program that changes its user would lose the signal above. One that
 * does not end within five seconds is killed.
 */
export const UNTIL_END_OF_INPUT = `
trap '' INT QUIT
exec 3<&0
"$0" "$@" < /dev/null &
program=$!
{
  cat <&3
  kill $program
  timeout 5 tail --pid=$program --sleep-interval=0.05 -f /dev/null || kill -KILL $program
} > /dev/null 2>&1 &
wait $program`;
