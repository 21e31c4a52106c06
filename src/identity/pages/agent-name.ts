/** What browsers call themselves, the ones that call themselves like others first. */
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Headless)?(?:Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
];
/** Systems that are things, with their article. */
const THINGS: Readonly<Record<string, string>> = { iPhone: 'an iPhone', iPad: 'an iPad', Mac: 'a Mac' };

const find = (names: typeof BROWSERS, userAgent: string) => names.find(([pattern]) => pattern.test(userAgent))?.[1];

/** The names of the browser and of the system that have sent a `User-Agent`; `null` for any that is not known. */
export function agentOf(userAgent: string | null): { browser: string; system: string } | null {
  if (!userAgent) return null;
  const [browser, system] = [find(BROWSERS, userAgent), find(SYSTEMS, userAgent)];
  return browser && system ? { browser, system } : null;
}

/** What people call the browser that has sent a `User-Agent`; the text itself for anything that is not known. */
export function agentName(userAgent: string | null): string {
  const agent = agentOf(userAgent);
  if (agent) return `${agent.browser} on ${THINGS[agent.system] ?? agent.system}`;
  return userAgent || 'A program';
}
