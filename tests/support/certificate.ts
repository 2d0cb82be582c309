/** A certificate that nobody has issued. */

import { mustRun } from "./run.ts";

/** Creates a certificate for 127.0.0.1 in a folder, and returns the paths of it and of its key. */
export async function createCertificate(folder: string) {
  const [certificate, key] = [`${folder}/certificate.pem`, `${folder}/key.pem`];
  await mustRun("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=test"],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
    ...["-addext", "subjectAltName=IP:127.0.0.1"],
  ]);
  return { certificate, key };
}
