import { assert, assertEquals, assertRejects } from "@std/assert";
import { verify } from "../../lib/publishing/verify.ts";
import { StorageError } from "../../lib/storage/errors.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openBucket } from "../support/bucket_storage.ts";
import { needing, shared } from "../support/permissions.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";

const store = shared(S3_STORE, () => S3Store.start());
const test = needing(...S3_STORE);

test("verify() rejects when the bucket refuses the credentials or is gone, and blames no item", async () => {
  const faults: [begin: () => Promise<void>, end: () => Promise<void>, message: string][] = [
    [
      () => store().changeSecret("another"),
      () => store().changeSecret(),
      "(CONTENT) cannot be read: the store answers 403 (SignatureDoesNotMatch)",
    ],
    [() => store().stop(), () => store().launch(), "the store cannot be reached"],
  ];
  await using subject = await openBucket(store());
  for (let count = 0; count < 40; count++) await subject.publish(newMetadata(), new Uint8Array(9));
  for (const [begin, end, message] of faults) {
    const states: string[] = [];
    let isFaulty: Promise<void> | undefined;
    const { signal } = new AbortController();
    const work = verify(subject.storage, {
      signal,
      report(verification) {
        states.push("outcome" in verification ? verification.outcome.state : "unused");
        return isFaulty ??= (async () => {
          await new Promise((resolve) => setTimeout(resolve, 500)); // for requests in flight
          await begin();
        })();
      },
    });
    await assertRejects(() => work, StorageError, message).finally(end);
    assertEquals([...new Set(states)], ["same"]);
    assert(states.length < 40);
  }
});
