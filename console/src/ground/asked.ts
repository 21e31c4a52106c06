import { useFilters } from './filters';

/** What the address can ask a view to open: its dialog that creates something. */
export const CREATE = 'create';

/** Whether the dialog that creates something is open. The address says it, so that it can be opened from elsewhere. */
export function useCreating(isAllowed: boolean): [boolean, (isOpen: boolean) => void] {
  const [search, change] = useFilters<'do'>();
  return [isAllowed && search.do === CREATE, (isOpen) => change({ do: isOpen ? CREATE : '' })];
}
