import { t } from '../texts';
import { instantOf } from './local-time';
import { timeZone } from './time';

/** What the address has of a span: local times, as inputs of browsers write them. */
export interface TimeFilter {
  from?: string | undefined;
  to?: string | undefined;
}

/** A local time as the service takes it; `undefined` for what is no time, and for a year that is still being typed. */
export const timeIn = (local: string | undefined): string | undefined => {
  const at = local ? instantOf(local, timeZone()) : null;
  return at === null || at < 0 ? undefined : new Date(at).toISOString();
};

/** From when on, and before when, things are listed. */
export function TimeFields({
  filter,
  onChange,
}: {
  filter: TimeFilter;
  onChange: (change: { from?: string; to?: string }) => void;
}) {
  return (['from', 'to'] as const).map((name) => (
    <label key={name}>
      {t[name]}
      <input
        type="datetime-local"
        value={filter[name] ?? ''}
        onChange={(event) => onChange({ [name]: event.target.value })}
      />
    </label>
  ));
}
