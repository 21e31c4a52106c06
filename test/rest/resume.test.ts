import { Kind, parse, Source } from 'graphql';
import { describe, expect, it } from 'vitest';
import type { ResponseBody } from '../../rest/operation.ts';
import { resumeProblems } from '../../rest/resume.ts';

function problemsOf(text: string, eventId: string | null = 'cursor') {
  const [operation] = parse(new Source(text, 'file')).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error(text);
  return resumeProblems(operation, { eventId } as ResponseBody);
}

describe('a stream that can be resumed', () => {
  it('has the id of a frame, and a variable that takes it again; or neither', () => {
    expect(problemsOf('subscription ($a: String @lastEventId) { e(after: $a) @body { cursor @eventId } }')).toEqual([]);
    expect(problemsOf('subscription ($a: String) { e(after: $a) @body { cursor } }', null)).toEqual([]);
    expect(problemsOf('query { e @body { cursor } }', null)).toEqual([]);
  });

  it.each<[string, string | null, string[]]>([
    [
      'query ($a: String @lastEventId) { e { cursor @eventId } }',
      'cursor',
      ['file:1:39 Only a subscription has frames with an id.'],
    ],
    ['query ($a: String @lastEventId) { e }', null, ['file:1:8 Only a subscription has frames with an id.']],
    ['mutation { e { cursor @eventId } }', 'cursor', ['file:1:16 Only a subscription has frames with an id.']],
    [
      'subscription ($a: String @lastEventId) { e }',
      null,
      ['file:1:15 @lastEventId needs a field with @eventId: the client sends the value of that field.'],
    ],
    [
      'subscription { e { cursor @eventId } }',
      'cursor',
      ['file:1:20 @eventId needs a variable with @lastEventId, which receives the value.'],
    ],
    [
      'subscription ($a: Int @lastEventId, $b: Int @lastEventId) { e { x @eventId y @eventId z @eventId } }',
      'x',
      ['file:1:76 A frame has one id.', 'file:1:87 A frame has one id.', 'file:1:37 A frame has one id.'],
    ],
    [
      'subscription ($a: Int @lastEventId) { e { cursor @eventId } }',
      null,
      ['file:1:43 @eventId stands on a plain field of the @body object.'],
    ],
    [
      'subscription ($a: Int @lastEventId @header(name: "x")) { e { cursor @eventId } }',
      'cursor',
      ['file:1:15 @header and @lastEventId exclude each other.'],
    ],
  ])('is refused with a part of it in the wrong place: %s', (text, eventId, problems) => {
    expect(problemsOf(text, eventId)).toEqual(problems);
  });
});
