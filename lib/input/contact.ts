/** The URL at which people reach the operator: the rule of a setting, and of an option. */

/** Matches an address that needs no quotes (RFC 5322 §3.2.3), at a domain. */
const ADDRESS = /^[\w'+-]+(?:\.[\w'+-]+)*(?<!')@(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,}$/i;

export const CONTACT = {
  /** For messages. */
  expected: 'a "mailto:" URL with one address, or an "https:" URL without a password',

  /** Returns the URL; `undefined` if it is not as expected. */
  parse(text: string): URL | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url?.protocol === "mailto:") return ADDRESS.test(url.pathname) ? url : undefined;
    const isPublic = url?.protocol === "https:" && url.username + url.password === "";
    return isPublic ? url : undefined;
  },
};
