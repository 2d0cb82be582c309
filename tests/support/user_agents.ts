/** User-Agents, and the names under which their calls are counted. */

import { OTHER } from "../../lib/lifecycle/user_agent.ts";

const TOKEN = "7f9c24e8-3b12-4fef-91e0-56a2d5a7bb2e";
const WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)";
const IPHONE = `Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) ${WEBKIT}`;
const ANDROID = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko)";
const WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)";
const CHROME = `${WINDOWS} Chrome/120.0.0.0 Safari/537.36`;

/** Names, each with a User-Agent that a client sends. */
const REAL = `
Pocket Casts | Pocket Casts
Pocket Casts | Pocket Casts/1.0 (Pocket Casts Feed Parser; +http://pocketcasts.com/)
Pocket Casts | Pocket%20Casts/7.96.0.4 CFNetwork/3826.600.41 Darwin/24.6.0
Shifty Jelly Pocket Casts | Shifty Jelly Pocket Casts, Android v4.3.5
PocketCasts | ${WINDOWS} PocketCasts/2.2.0 Chrome/144.0.7559.220 Electron/40.6.1 Safari/537.36
Overcast | Overcast/3.0 (+http://overcast.fm/; iOS podcast app)
Overcast | Overcast (+http://overcast.fm/; Apple Watch podcast app)
AppleCoreMedia | AppleCoreMedia/1.0.0.16G78 (HomePod; U; CPU OS 12_4 like Mac OS X; en_us)
iOS VG Hermes | AppleCoreMedia/1.0.0.19E239 (iPhone; U; CPU OS 15_4 like Mac OS X; sv_se) iOS VG Hermes/90.0.0 _app_
Podcasts | Podcasts/1410.53 CFNetwork/1111 Darwin/19.0.0 (x86_64)
Подкасты | %D0%9F%D0%BE%D0%B4%D0%BA%D0%B0%D1%81%D1%82%D1%8B/1410.25.1 CFNetwork/1107.1
播客 | \xe6\x92\xad\xe5\xae\xa2/1709.2.2 CFNetwork/1390 Darwin/22.0.0
iTunes | iTunes/12.10.9 (Windows; Microsoft Windows 10 x64 Home (Build 19041); x64) AppleWebKit/7609.3005.1003.3
AntennaPod | AntennaPod/1.5.2.0
de.danoeh.antennapod | de.danoeh.antennapod/1.7.3b (Linux;Android 8.0.0) ExoPlayerLib/2.9.3
Podbean | Podbean/Android App 7.6.4 (http://podbean.com),1927526fe23b5acf535b3e91b64cee95
Spotify | Spotify/8.7.10 iOS/15.3.1 (iPhone13,2)
Deezer | Deezer/6.2.2.80 (Android; 9; Mobile; fr) samsung SM-G950F
Castro | Castro 2019.13/1167
Downcast | Downcast/2.9.57 (Mac OS X Version 10.15.7 (Build 19H15))
TuneIn Radio | TuneIn Radio/18.1; iPhone12,8; iOS/13.4.1
gPodder | gPodder/3.10.15 (+http://gpodder.org/) Linux/5.4.0-74-generic
Fountain | Fountain/0.2.6 iOS https://www.fountain.fm
101 ESPN | 101 ESPN/iOS 8.1.13 (iPad Air /12.5.7) HubbardApp/120
Googlebot | Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
Googlebot | ${ANDROID} Chrome/86.0.4240.96 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
UptimeRobot | Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)
Yahoo! Slurp | Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/ysearch/slurp)
Slackbot | Slackbot 1.0 (+https://api.slack.com/robots)
LinkedInBot | LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://linkedin.com)
Applebot | ${IPHONE} Version/8.0.2 Safari/600.2.5 (Applebot/0.1; +http://www.apple.com/go/applebot)
GPTBot | Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)
BDCbot | Mozilla/5.0 (Windows NT 10.0; x64; BDCbot/1.0; +http://bigdatacorp.com.br) Chrome/69.0 Safari/537.36
PetalBot | ${ANDROID} Mobile Safari/537.36 (compatible;PetalBot;+https://aspiegel.com/petalbot)
archive.org_bot | Mozilla/5.0 (compatible; archive.org_bot +http://www.archive.org/details)
AhrefsBot.Feeds | AhrefsBot.Feeds v0.1; http://ahrefs.com/
ProbelySPDR | Mozilla/5.0 (compatible; +https://probely.com/sos) ${WEBKIT} ProbelySPDR/0.2.0
HeadlessChrome | ${WINDOWS} HeadlessChrome/120.0.0.0 Safari/537.36
python-requests | python-requests/1.2.0 CPython/2.7.3 Linux/3.8.0-33-generic
Python | Python/3.11
aiohttp | Python/3.11 aiohttp/3.9.3
BBC Sounds | BBC Sounds/2.1 okhttp/4.12.0
Dart | Dart/2.18 (dart:io)
Go-http-client | Go-http-client/1.1
curl | curl/7.21.0 (i386-redhat-linux-gnu) libcurl/7.21.0 NSS/3.12.10.0
Wget | Wget/1.11.4 Red Hat modified
Apache-HttpClient | Apache-HttpClient/4.5.3 (Java/1.8.0_292)
GuzzleHttp | GuzzleHttp/6.1.0 curl/7.50.1 PHP/7.0.13-0ubuntu0.16.10.1
node-fetch | node-fetch/1.0 (+https://github.com/bitinn/node-fetch)
Dalvik | Dalvik/2.1.0 (Linux; U; Android 9; SM-G960F Build/PPR1.180610.011)
nprone_android | Dalvik/2.1.0 (Linux; U; Android 13; SM-G991U) nprone_android/3.7.0/OSv:13
mpv | mpv 0.35.1
Lavf | Lavf/58.76.100
Lavf | Lavf52.104.0 WMPlayer/10.0.0.364
Sonos | Linux UPnP/1.0 Sonos/61.1-83220 (ZPS1)
CrKey | Mozilla/5.0 (Fuchsia) ${WEBKIT} Chrome/110.0.0.0 Safari/537.36 CrKey/1.56.500000
Roku | Roku/DVP-9.10 (499.10E04121A)
Alexa Mobile Voice | Alexa Mobile Voice/2.2.2768.0 (Linux;Android 7.0) ExoPlayerLib/2.2.0
Echo | Echo/1.0(APNG)
Amazon | Amazon;Echo_Dot;27d4dfe427b34d57995b463e5d63198d;;tpapi;3.199.422
Garmin fenix | Garmin fenix 6 Pro/26.0
Chrome | ${CHROME}
Chrome | ${ANDROID} Version/4.0 Chrome/88.0.4324.93 Mobile Safari/537.36
Firefox | Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/118.0
Safari | ${IPHONE} Version/17.2 Mobile/15E148 Safari/604.1
Mobile Safari | Mozilla/5.0 (Linux; U; Android 4.3; en-us) Version/4.0 Mobile Safari/534.30
Edg | ${CHROME} Edg/120.0.2210.91
OPR | ${CHROME} OPR/106.0.0.0
Opera | Opera/9.80 (Windows NT 6.1; U; en) Presto/2.12.388 Version/12.16
SamsungBrowser | ${ANDROID} SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36
CriOS | ${IPHONE} CriOS/120.0.6099.119 Mobile/15E148 Safari/604.1
MSIE | Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.1; Trident/6.0)
Mozilla | Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko
Mozilla | Mozilla/5.0 (X11)
Instagram | ${IPHONE} Mobile/15E148 Instagram 108.0.0.9.119 (iPhone9,3; iOS 12_3_1; en_IN)
FBAN | ${IPHONE} Mobile/15E148 [FBAN/FBIOS;FBDV/iPhone7,2;FBMD/iPhone;FBSN/iOS]`;

/** What identifies a person, an installation or an item, and what is no name. */
const NAMELESS = [
  ...[TOKEN, TOKEN.toUpperCase(), TOKEN.replaceAll("-", ""), `${TOKEN.slice(0, 8)}/1`],
  ...[`App-${TOKEN}`, `Mozilla/5.0 (compatible; ${TOKEN})`, `%37${TOKEN.slice(1)}`],
  ...["amazon-on-behalf-of-ab5a6944", "jane@example.com", "Jane%40example.com/1"],
  ...["user-491511/1", "192.0.2.4", "2001:db8::1", "4.0"],
  ...["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP", "https://audioboom.com/boos/"],
  ...["(Macintosh)", " ", "/", "((((", "%", "%00/1", "\x1b[;"],
];

/** Returns text as Fetch returns it from a field in UTF-8: each byte as a character. */
const inUtf8 = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

const HOSTILE: readonly (readonly [name: string, userAgent: string])[] = [
  ["red", "red\x1b[31m"],
  ["script>alert", "<script>alert(1)</script>"],
  ["Ünïcode", "Ünïcode/1"],
  ["a b", "a%0D%0A%E2%80%AE%20b/1"],
  ["App", `App/${TOKEN}`],
  ["App", "App 192.0.2.4"],
  ["App", "(a (b) c/1) App (unclosed; B/1"],
  ["x".repeat(64), "x".repeat(8000)],
  ["𝒳".repeat(32), inUtf8("𝒳".repeat(40))],
  ["a" + "𝒳".repeat(31), inUtf8("a" + "𝒳".repeat(40))], // cut within a character
  ["it's; DROP TABLE", "it's%3B%20DROP%20TABLE/1"],
  ["(no User-Agent)", ""],
];

/** Each name, with a User-Agent that gives it. */
export const NAMED_USER_AGENTS: readonly (readonly [name: string, userAgent: string])[] = [
  ...REAL.trim().split("\n").map((row) => row.split(" | ") as [string, string]),
  ...HOSTILE,
  ...NAMELESS.map((userAgent) => [OTHER, userAgent] as const),
];
