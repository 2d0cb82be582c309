/**
 * The suites of content stores, on a bucket of a real store.
 */

import { openBucket } from "../../../support/bucket_storage.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { S3_STORE, S3Store } from "../../../support/s3_store.ts";
import { testMediaStorage } from "../../media/media_storage_suite.ts";

const store = shared(S3_STORE, () => S3Store.start());

testMediaStorage("MediaStorage on a bucket", () => openBucket(store()), needing(...S3_STORE));
