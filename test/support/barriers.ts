import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** What axe finds serious in a page that has come to rest: a colour on its way to another is neither of the two. */
export async function barriersOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  await page.evaluate('Promise.allSettled(document.getAnimations().map(({ finished }) => finished))');
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as axe.AxeResults;
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}
