import { assert, assertEquals } from "@std/assert";
import { productOf } from "../../lib/lifecycle/user_agent.ts";
import { NAMED_USER_AGENTS } from "../support/user_agents.ts";

Deno.test("productOf() returns the name of the product in a User-Agent", () => {
  for (const [name, userAgent] of NAMED_USER_AGENTS) {
    assertEquals(productOf(userAgent).name, name, userAgent);
  }
  assertEquals(productOf(null).name, "(no User-Agent)");
  for (let code = 0; code < 0x3000; code++) {
    const char = String.fromCharCode(code);
    for (const userAgent of [char, `a${char}b/1 (${char}; c${char})`, char.repeat(99)]) {
      const name = productOf(userAgent).name;
      assert(/^[^\p{C}]{1,64}$/u.test(name) && name === name.trim(), JSON.stringify(name));
    }
  }
});

Deno.test("productOf() escapes what would not be seen", () => {
  const rows: [sent: string, name: string][] = [
    ["My\u200bPod", "My\\u200bPod"],
    ["MyPod\u3164", "MyPod\\u3164"],
    ["My\u00adPod", "My\\u00adPod"],
    ["MyPod\u2800", "MyPod\\u2800"],
    ["MyPod\ufeff\ufe0f", "MyPod\\ufeff\\ufe0f"],
    ["MyPod\u{e0041}", "MyPod\\u{e0041}"],
    ["\u3164\u115f", "(other)"],
    ["user-491\u200b511", "(other)"], // which would identify
    ["播客", "播客"],
  ];
  for (const [sent, name] of rows) {
    const bytes = new TextEncoder().encode(sent);
    const field = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    for (const text of [encodeURIComponent(sent), field]) {
      assertEquals(productOf(`${text}/1.0`).name, name);
    }
  }
});

Deno.test("productOf() returns the version that follows the name, without what identifies", () => {
  const rows: [userAgent: string, name: string, release: string | undefined][] = [
    ["Overcast/3.0.1 (+http://overcast.fm/; iOS podcast app)", "Overcast", "3.0.1"],
    ["Pocket%20Casts/7.96 CFNetwork/3826.600.41", "Pocket Casts", "7.96"],
    ["AppleCoreMedia/1.0.0.16G78 (HomePod) Sonos/61.1-83220", "Sonos", "61.1-83220"],
    ["de.danoeh.antennapod/1.7.3b (Linux)", "de.danoeh.antennapod", "1.7.3b"],
    ["Castro 2019.13/1167", "Castro", "2019.13"],
    ["Lavf52.104.0 WMPlayer/10.0.0.364", "Lavf", "52.104.0"],
    ["mpv v0.35.1", "mpv", "0.35.1"],
    [
      "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
      "Googlebot",
      "2.1",
    ],
    ["Mozilla/5.0 (X11) Chrome/88.0.4324.93 Safari/537.36", "Chrome", "88.0.4324.93"],
    ["App/1.2.3.4.5", "App", "1.2.3.4.5"],
    ["App/3.0.", "App", "3.0"],
    ["App/1.0.0-SNAPSHOT-42", "App", "1.0.0-SNAPSHOT-4"], // 16 characters
    ["App", "App", undefined],
    ["App/beta", "App", undefined],
    ["App (1.2)", "App", undefined],
    ["App/\u0663.\u0660", "App", undefined],
    ["checkout-service@1.4.2", "checkout-service", "1.4.2"],
    ["checkout@v2.0.0-beta.1 axios/1.7", "checkout", "2.0.0-beta.1"],
    ["checkout@7 (linux)", "checkout", "7"],
    ...["jane@163.com", "jane@1.4.com", "jane@4-you.de", "jane@1.2.3-you.de", "jane@192.0.2.4"]
      .map((mail): [string, string, undefined] => [mail, "(other)", undefined]),
    // An address has four numbers.
    ["App/192.0.2.4", "App", "192.0.2"],
    ["App 192.0.2.4", "App", "192.0.2"],
    ["App/192.0.2.4:80", "App", "192.0.2"],
    ["App/192.0.2.4.example.com", "App", "192.0.2"],
    // What identifies
    ["App/3.0-7f9c24e8", "App", undefined],
    ["App/3.0+build.491511", "App", undefined],
    ["App/3.0-jane@example.com", "App", undefined],
    ["App/3.0%2Djane%40example.com", "App", undefined],
    ["App/3.0/7f9c24e8-3b12-4fef-91e0-56a2d5a7bb2e", "App", undefined],
    ["user-491511/1.0", "(other)", undefined],
    ["", "(no User-Agent)", undefined],
  ];
  for (const [userAgent, name, release] of rows) {
    for (const _ of [1, 2]) { // parsed, and remembered
      const product = productOf(userAgent);
      assertEquals([product.name, product.release], [name, release], userAgent);
    }
  }
  for (const [, userAgent] of NAMED_USER_AGENTS) {
    const { release = "1" } = productOf(userAgent);
    assert(/^\d[\w.+~-]{0,15}$/.test(release), release);
  }
});
