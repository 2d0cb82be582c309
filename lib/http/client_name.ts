/**
 * Client names: the product in User-Agent (RFC 9110 §10.1.5).
 */

/** The client names of calls without a User-Agent, and of those whose own name is not counted. */
export const [NONE, OTHER] = ["(no User-Agent)", "(other)"];

/** The first product name in a User-Agent (RFC 9110 §10.1.5), up to 64 characters. */
const PRODUCT = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}/;

/** A UUID, which may be a token or identify an installation; or an address. */
const IDENTIFYING = /[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|^[\d.]+$/i;

/**
 * Returns the name under which to count a client. It contains no personal data, address or token.
 *
 * @param userAgent e.g. `Overcast/3.1 (+https://overcast.fm/)`, which gives "Overcast".
 * @returns "(no User-Agent)" without a User-Agent, "(other)" if it starts with no product, or with one
 *   that contains a UUID or is an address.
 */
export function clientOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return NONE;
  const [product = OTHER] = PRODUCT.exec(userAgent) ?? [];
  return IDENTIFYING.test(product) ? OTHER : product;
}
