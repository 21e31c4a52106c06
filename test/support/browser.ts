import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { describe } from 'vitest';
import { PATIENCE_MS } from './slowness.ts';

/** Without all that a window would need, pages take half as much of the processor. */
const WITHOUT_WINDOW = '/usr/bin/chromium-headless-shell';

/** What CHROMIUM names, or Debian's package `chromium-headless-shell` or `chromium`. */
const executablePath = process.env.CHROMIUM ?? (existsSync(WITHOUT_WINDOW) ? WITHOUT_WINDOW : '/usr/bin/chromium');

/** Without a browser, only CI insists. */
export const describeInBrowser = describe.skipIf(!process.env.CI && !existsSync(executablePath));

/** A browser whose pages have as long for each step as a busy machine takes: half a minute is the default. */
export async function launchBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'], timeout: PATIENCE_MS });
  return browser.on('context', (context) => context.setDefaultTimeout(PATIENCE_MS));
}
