import { expect, it } from 'vitest';
import { traceParentOf } from '../../../src/platform/tracing/trace-parent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

it.each([
  [`00-${TRACE}-${SPAN}-01`, true],
  [`00-${TRACE}-${SPAN}-00`, false],
  [`00-${TRACE}-${SPAN}-ff`, true],
  // a later version, with what it may add
  [`01-${TRACE}-${SPAN}-01`, true],
  [`cc-${TRACE}-${SPAN}-02-what-comes`, false],
])('is read: %s', (header, isSampled) => {
  expect(traceParentOf(header)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled });
});

it.each([
  undefined,
  '',
  [`00-${TRACE}-${SPAN}-01`],
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-1`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  ` 00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01\n`,
  `01-${TRACE}-${SPAN}-01-${'x'.repeat(300)}`,
  `01-${TRACE}-${SPAN}-01-\u00e4`,
])('is refused: %j', (header) => {
  expect(traceParentOf(header)).toBeNull();
});
