import { useParams, useRouter, useRouterState } from '@tanstack/react-router';

/** The filters of the address, which can be passed on, and how to change some of them. */
export function useFilters<Name extends string>(): [
  Partial<Record<Name, string>>,
  (changes: Partial<Record<Name, string>>) => void,
] {
  const { history } = useRouter();
  const text = useRouterState({ select: ({ location }) => location.searchStr });
  const search = Object.fromEntries(new URLSearchParams(text)) as Partial<Record<Name, string>>;
  const set = (changes: Partial<Record<Name, string>>) => {
    const query = new URLSearchParams(history.location.search);
    for (const [name, value] of Object.entries<string | undefined>(changes))
      if (value) query.set(name, value);
      else query.delete(name);
    history.replace(`${history.location.pathname}${query.size > 0 ? `?${query}` : ''}`);
  };
  return [search, set];
}

/** The names that the address has for places. */
export const useNames = (): { org?: string; ws?: string; app?: string; instance?: string } =>
  useParams({ strict: false }) as { org?: string; ws?: string; app?: string; instance?: string };
