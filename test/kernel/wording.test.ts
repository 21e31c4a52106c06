import { expect, test } from 'vitest';
import { alreadyExists } from '../../src/kernel/errors.ts';
import type { ResourceWord } from '../../src/kernel/resources.ts';

test.each<[ResourceWord, string]>([
  ['environment', "An environment with the slug 'x' already exists."],
  ['api_token', "An api token with the slug 'x' already exists."],
  ['user', "A user with the slug 'x' already exists."],
  ['workspace', "A workspace with the slug 'x' already exists."],
])('a message has the right article: %s', (resourceType, message) => {
  expect(alreadyExists(resourceType, 'slug', 'x').message).toBe(message);
});
