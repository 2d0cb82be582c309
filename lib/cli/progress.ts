/**
 * A progress bar for work that takes long enough to wonder.
 */

// @ts-types="npm:@types/cli-progress@3.11.6"
import { Format, SingleBar } from "cli-progress";
import type { Step } from "../storage/content.ts";

/** Milliseconds of silence before the bar shows. */
const PATIENCE = 1000;

/** What is being read. */
export interface Progress {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** What is done with it. */
  readonly step: Step;
}

/** Passes chunks through, and shows on a terminal's standard error how many have passed. */
export async function* withProgress(
  chunks: AsyncIterable<Uint8Array>,
  { name, size, step }: Progress,
): AsyncGenerator<Uint8Array> {
  const bar = new SingleBar({
    format: "{bar} {percentage}% | {value}/{total} | {eta_formatted} left | {step} {name}",
    formatValue: (value, _options, type) =>
      type === "value" || type === "total"
        ? megabytes(value)
        : Format.ValueFormat(value, _options, type),
    clearOnComplete: true,
    hideCursor: true,
    noTTYOutput: false,
  });
  const start = performance.now();
  let done = 0;
  try {
    for await (const chunk of chunks) {
      yield chunk;
      done += chunk.length;
      if (bar.isActive) bar.update(done);
      else if (performance.now() - start > PATIENCE) bar.start(size, done, { name, step });
    }
  } finally {
    bar.stop();
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
