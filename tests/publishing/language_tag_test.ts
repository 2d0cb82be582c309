import { assertEquals } from "@std/assert";
import { parseLanguageTag } from "../../lib/publishing/language_tag.ts";

Deno.test("parseLanguageTag() keeps every subtag, in conventional case", () => {
  const rows: [text: string, tag: string][] = [
    ["en-GB", "en-GB"],
    ["EN-gb", "en-GB"],
    ["tl", "tl"], // not fil
    ["cmn", "cmn"], // not zh
    ["zh-yue", "zh-yue"],
    ["zh-cmn-hans-cn", "zh-cmn-Hans-CN"],
    ["ZH-HANT", "zh-Hant"],
    ["sr-latn-rs", "sr-Latn-RS"],
    ["es-419", "es-419"],
    ["sl-rozaj-biske-1994", "sl-rozaj-biske-1994"],
    ["de-ch-1901", "de-CH-1901"],
    ["az-arab-x-aze-derbend", "az-Arab-x-aze-derbend"],
    ["en-u-ca-gregory", "en-u-ca-gregory"],
    ["en-a-bbb-x-a-ccc", "en-a-bbb-x-a-ccc"],
    ["x-private", "x-private"],
    ["X-WHATEVER-A", "x-whatever-a"],
    ["art-lojban", "art-lojban"],
    ["zh-min-nan", "zh-min-nan"],
    ["qaa-Qaaa-QM-x-southern", "qaa-Qaaa-QM-x-southern"],
  ];
  for (const [text, tag] of rows) assertEquals(parseLanguageTag(text), tag, text);
});

Deno.test("parseLanguageTag() refuses what RFC 5646 does not allow", () => {
  const texts = [
    ...["", "e", "english", "x", "i", "i-none", "en_GB", "en-", "-en", "en--GB", "en GB"],
    ...["en-GB\n", "en-GB-US", "en-Latn-Cyrl", "de-419-DE", "a-DE", "de-1-x", "en-x", "en-u"],
    ...["ar-a-aaa-b", "en-abcdefghi", "i-klingon"],
    ...["für", "en-é", "en-*"],
  ];
  for (const text of texts) assertEquals(parseLanguageTag(text), undefined, text);
});
