/** What the media server's command makes of a report: text, a page and JSON. */

import { PROGRAM } from "../../lib/cli/usage.ts";
import { usageJson as jsonOf } from "../../lib/usage/output/json.ts";
import { usagePage as pageOf } from "../../lib/usage/output/operator_page.ts";
import { gateText as gateTextOf, usageText as textOf } from "../../lib/usage/output/text.ts";
import type { UsageReport } from "../../lib/usage/verdict/report.ts";

export const usageText = (report: UsageReport, program = PROGRAM) => textOf(report, program);

export const gateText = (report: UsageReport) => gateTextOf(report, PROGRAM);

export const usagePage = (report: UsageReport) => pageOf(report, PROGRAM);

export const usageJson = (report: UsageReport) => jsonOf(report, PROGRAM);
