import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import {
  activeSpan,
  apart,
  kindOf,
  spanned,
  type TraceSpan,
  traceBegan,
  traceEnded,
  within,
} from '../../src/kernel/spans.ts';

/** A span that keeps how it was ended. */
class Span implements TraceSpan {
  readonly traceId = 'a trace';
  readonly traceparent = 'its parent';
  readonly parent: Span | null;
  isEnded = false;
  readonly failures: (string | undefined)[] = [];
  readonly set = (): void => undefined;

  constructor(parent: Span | null = null) {
    this.parent = parent;
  }

  child(): Span {
    return new Span(this);
  }

  end(failure?: string): void {
    this.isEnded = true;
    this.failures.push(failure);
  }
}

/** Ends what a test began. */
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
function began(): void {
  traceBegan();
  ends.push(traceEnded);
}

describe('the span of what runs', () => {
  it('is that of the work it was begun in, also later', async () => {
    began();
    const span = new Span();
    const seen = within(span, async () => {
      await setImmediate();
      return activeSpan();
    });
    expect(activeSpan()).toBeUndefined();
    expect(await seen).toBe(span);
  });

  it('is the nearest one that goes on', () => {
    began();
    const request = new Span();
    const operation = request.child();
    const statement = operation.child();
    const seen = () => within(statement, activeSpan);
    expect(seen()).toBe(statement);
    statement.end();
    operation.end();
    expect(seen()).toBe(request);
    request.end();
    expect(seen()).toBeUndefined();
  });

  it('is none of what is set going apart, and of what that sets going', async () => {
    began();
    const [later, now] = within(new Span(), () => [
      apart(async () => {
        await setImmediate();
        return activeSpan();
      }),
      apart(() => 'what it returns'),
    ]);
    expect([await later, now]).toEqual([undefined, 'what it returns']);
  });

  it('is none any more when the last trace has ended', () => {
    traceBegan();
    traceBegan();
    within(new Span(), () => {
      traceEnded();
      expect(activeSpan()).toBeInstanceOf(Span);
      traceEnded();
      expect(activeSpan()).toBeUndefined();
    });
  });
});

describe('work that is a span', () => {
  it('runs as a part of it, and ends it', async () => {
    began();
    const span = new Span();
    expect(await spanned(span, () => activeSpan())).toBe(span);
    expect(span.failures).toEqual([undefined]);
  });

  it('ends it with the kind of its failure, which goes on', async () => {
    const span = new Span();
    const failure = new TypeError('what somebody sent');
    await expect(spanned(span, () => Promise.reject(failure))).rejects.toBe(failure);
    expect(span.failures).toEqual(['TypeError']);
  });
});

describe('the kind of an error', () => {
  const coded = (code: unknown) => Object.assign(new RangeError('what somebody sent'), { code });

  it.each([
    ['its code', coded('ECONN_RESET-1.a'), 'ECONN_RESET-1.a'],
    ['its class without one', new RangeError('what somebody sent'), 'RangeError'],
    ['its class where the code has other characters', coded('what somebody sent'), 'RangeError'],
    ['its class where the code ends with others', coded('E!'), 'RangeError'],
    ['its class where the code begins with others', coded('!E'), 'RangeError'],
    ['its class where the code is too long', coded('E'.repeat(65)), 'RangeError'],
    ['a code of the greatest length', coded('E'.repeat(64)), 'E'.repeat(64)],
    ['its class where the code is empty', coded(''), 'RangeError'],
    ['said of what is no error', 'what somebody sent', 'no error'],
  ])('is %s', (_, error, kind) => {
    expect(kindOf(error)).toBe(kind);
  });
});
