import type { paths } from './generated/rest.ts';
import type { Rest } from './rest.ts';

type PageOf<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': infer Page } } } };
}
  ? Page
  : never;

/** The paths of lists that have pages. */
export type ListPath = {
  [Path in keyof paths]: PageOf<Path> extends { next_cursor: string | null } ? Path : never;
}[keyof paths];

/** What a list contains: the elements of the one array of its pages. */
export type ItemOf<Path extends ListPath> = {
  [Key in keyof PageOf<Path>]: PageOf<Path>[Key] extends readonly (infer Item)[] ? Item : never;
}[keyof PageOf<Path>];

type ParametersOf<Path extends ListPath> = paths[Path] extends { get: { parameters: infer Given } } ? Given : never;
/** The parameters of the path and the query of a list, without `cursor`. */
export type ListParameters<Path extends ListPath> = {
  path: ParametersOf<Path> extends { path: infer Given } ? Given : Record<string, never>;
  query?: ParametersOf<Path> extends { query?: infer Given } ? Omit<NonNullable<Given>, 'cursor'> : never;
};

interface Page {
  next_cursor: string | null;
}

/** The entries of a list, read page by page as they are needed. */
export async function* pagesOf<Path extends ListPath>(
  rest: Rest,
  path: Path,
  { path: place, query }: ListParameters<Path>,
  signal?: AbortSignal,
): AsyncGenerator<ItemOf<Path>, void, undefined> {
  // one call for all lists: their parameters are checked where this is called
  const get = rest.GET as unknown as (path: string, init: object) => Promise<{ data: Page }>;
  let cursor: string | null | undefined;
  do {
    const params = { path: place, query: { ...query, ...(cursor && { cursor }) } };
    const { data } = await get(path, { params, ...(signal && { signal }) });
    yield* Object.values(data).find((value): value is ItemOf<Path>[] => Array.isArray(value)) ?? [];
    cursor = data.next_cursor;
  } while (cursor);
}
