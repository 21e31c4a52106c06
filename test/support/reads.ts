import type { PageArgs } from '../../src/data/page.ts';
import { Reads } from '../../src/data/reads.ts';
import type { Services } from '../../src/graphql/context.ts';
import { writtenIn } from './source-files.ts';

export type AnyReads = Reads<{ id: string }, object, PageArgs>;

/** Every `Reads` that a service shows, as `service.property`. */
export const readsIn = (services: Services): Map<string, AnyReads> =>
  new Map(
    Object.entries(services).flatMap(([service, its]) =>
      Object.entries(its as object).flatMap(([property, value]): [string, AnyReads][] =>
        value instanceof Reads ? [[`${service}.${property}`, value as unknown as AnyReads]] : [],
      ),
    ),
  );

/** How many the code makes: one that no service shows would be found by no suite. */
export const writtenReads = (): number =>
  Object.values(writtenIn(/new (?:Leading)?Reads\b/g)).reduce((sum, count) => sum + count, 0);
