import { Kind, parse, Source } from 'graphql';
import { describe, expect, it } from 'vitest';
import { pathProblems, routeKey, toUrl } from '../../rest/template.ts';

/** The mistakes in a path, of an operation with two variables. */
function problemsOf(path: string, directive = `@rest(method: GET, path: "${path}")`) {
  const [operation] = parse(new Source(`query A($item_id: ID!, $n2: Int)\n${directive} { x }`, 'file')).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error(path);
  return pathProblems(operation, path);
}
const noTemplate = (path: string) =>
  `'${path}' is no path template: '/', then segments that are plain or one {variable}.`;

describe('a path with variables', () => {
  it.each(['/v1/{item_id}', '/v1/{item_id}/parts/{n2}', '/v1/items.json'])('may be %s', (path) => {
    expect(problemsOf(path)).toEqual([]);
  });

  it.each(['/v1/{item-id}', '/v1/{Item}', '/v1/{2n}', '/v1/{}', '/v1/{_a}', '/v1/{item_id}{n2}'])(
    'may not be %s',
    (path) => {
      expect(problemsOf(path)).toContain(`file:2:1 ${noTemplate(path)}`);
    },
  );

  it('has its mistakes at the directive that has it, or at the operation', () => {
    expect(problemsOf('/v1/{other_id}')).toEqual([
      "file:2:1 The path variable '{other_id}' is not declared as '$other_id'.",
    ]);
    expect(problemsOf('/v1/{n2}/{n2}')).toEqual(["file:2:1 The path has '{n2}' twice."]);
    expect(problemsOf('v1', '')).toEqual([`file:1:1 ${noTemplate('v1')}`]);
  });

  it('is one route, whatever its variables are called', () => {
    expect(routeKey('GET', '/v1/{item_id}/x/{n2}')).toBe('GET /v1/{}/x/{}');
    expect(toUrl('/v1/{item_id}/x/{n2}')).toBe('/v1/:item_id/x/:n2');
  });
});
