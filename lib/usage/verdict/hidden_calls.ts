/** What the probe of the gate finds where calls may not reach the servers. */

/** Why calls to a route may not reach the servers. */
export type HiddenCalls =
  & { readonly route: string }
  & (
    /** In a brownout, no response may be cached. It ends at `until`. */
    | { readonly reason: "brownout"; readonly until: number }
    /** Just before a phase ends, no response may be cached. It ends at `until`. */
    | { readonly reason: "phase ends"; readonly until: number }
    /** Today's limit of probes with a name of their own is used up. */
    | { readonly reason: "too many probes" }
    /** A cache answered for the servers. */
    | { readonly reason: "cached" }
    | Answer
  );

/** What came back for a request that no server counted under the probe's name. */
export type Answer =
  | {
    readonly reason: "redirect";
    readonly status: number;
    /** The field Location. */
    readonly location: string;
  }
  | { readonly reason: "credentials"; readonly status: number }
  | { readonly reason: "rate limit"; readonly status: number }
  /** Any other response. */
  | { readonly reason: "not counted"; readonly status: number }
  /** There was no response. */
  | {
    readonly reason: "no answer";
    /** The message of the error. */
    readonly message: string;
    /** Whether the certificate's issuer is unknown. */
    readonly isUntrusted: boolean;
  };
