import { useState } from 'react';
import {
  MuteCategoriesDocument,
  MutePlacesDocument,
  NotificationSettingsDocument,
  type NotificationSettingsQuery,
  ShellDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { Dialog } from '../ground/dialog';
import { faultOf, Loading, Problem } from '../ground/problem';
import { t } from '../texts';

type Preferences = NotificationSettingsQuery['notificationPreferences'];
type Mute = Preferences['mutes'][number];
type Category = Mute['category'];
type Channel = Mute['channel'];

/** What the reader gets no notifications about: everywhere, or in one place. */
export function Settings({ onClose }: { onClose: () => void }) {
  const { data, error } = useAnswer(NotificationSettingsDocument, {});
  const preferences = data?.notificationPreferences;
  return (
    <Dialog title={t.notifications.settings} onClose={onClose} isWide>
      <Problem error={error} />
      {!preferences && !error && <Loading />}
      {preferences && <Categories preferences={preferences} />}
      {preferences && <Mutes preferences={preferences} />}
    </Dialog>
  );
}

/** Each click is saved: what is muted is what one sees. */
function Categories({ preferences: { availableCategories, mutedCategories } }: { preferences: Preferences }) {
  const save = useChange(MuteCategoriesDocument);
  const [problem, setProblem] = useState('');
  const toggle = async (category: Category) => {
    const others = mutedCategories.filter((one) => one !== category);
    const muted = mutedCategories.includes(category) ? others : [...others, category];
    const { error } = await save({ input: { mutedCategories: muted } });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <fieldset className="field">
      <legend>{t.notifications.muted}</legend>
      <Problem message={problem} />
      <div className="many">
        {availableCategories.map((category) => (
          <label key={category}>
            <input
              type="checkbox"
              checked={mutedCategories.includes(category)}
              onChange={() => void toggle(category)}
            />{' '}
            {t.notifications.categories[category]}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** The place of a mute. Ids stand for places that the reader has left. */
const placeOf = ({ organization, orgId, workspace, workspaceId }: Mute): string =>
  [organization?.name ?? orgId, workspace?.name ?? workspaceId].filter(Boolean).join(' / ') ||
  t.notifications.everywhere;

const nameOf = (mute: Mute): string =>
  t.notifications.muteOf(
    t.notifications.categories[mute.category],
    t.notifications.channels[mute.channel],
    placeOf(mute),
  );

const inputOf = ({
  category,
  channel,
  orgId,
  workspaceId,
}: Pick<Mute, 'category' | 'channel' | 'orgId' | 'workspaceId'>) => ({
  category,
  channel,
  ...(orgId && { orgId }),
  ...(workspaceId && { workspaceId }),
});

function Mutes({ preferences: { availableCategories, mutes } }: { preferences: Preferences }) {
  const save = useChange(MutePlacesDocument);
  const { data } = useAnswer(ShellDocument, {}, { isFresh: false });
  const [category, setCategory] = useState<Category>(availableCategories[0] ?? 'system');
  const [channel, setChannel] = useState<Channel>('mail');
  const [place, setPlace] = useState('');
  const [problem, setProblem] = useState('');
  const replace = async (given: readonly ReturnType<typeof inputOf>[]) => {
    const { error } = await save({ input: { mutes: given } });
    setProblem(error ? faultOf(error).message : '');
  };
  const [orgId = null, workspaceId = null] = place === '' ? [] : place.split(' ');
  return (
    <section aria-label={t.notifications.mutes}>
      <h3>{t.notifications.mutes}</h3>
      <Problem message={problem} />
      {mutes.length === 0 && <p className="quiet">{t.notifications.noMutes}</p>}
      <ul className="plain releases">
        {mutes.map((mute) => (
          <li key={nameOf(mute)}>
            {nameOf(mute)}
            <button
              type="button"
              className="small"
              aria-label={t.notifications.endOne(nameOf(mute))}
              onClick={() => void replace(mutes.filter((other) => other !== mute).map(inputOf))}
            >
              {t.notifications.end}
            </button>
          </li>
        ))}
      </ul>
      <form
        className="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void replace([...mutes.map(inputOf), inputOf({ category, channel, orgId, workspaceId })]);
        }}
      >
        <label>
          {t.notifications.category}
          <select value={category} onChange={({ target }) => setCategory(target.value as Category)}>
            {availableCategories.map((one) => (
              <option key={one} value={one}>
                {t.notifications.categories[one]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t.notifications.channel}
          <select value={channel} onChange={({ target }) => setChannel(target.value as Channel)}>
            <option value="mail">{t.notifications.channels.mail}</option>
            <option value="in_app">{t.notifications.channels.in_app}</option>
          </select>
        </label>
        <label>
          {t.notifications.place}
          <select value={place} onChange={({ target }) => setPlace(target.value)}>
            <option value="">{t.notifications.everywhere}</option>
            {data?.me.organizations.nodes.flatMap((organization) => [
              <option key={organization.id} value={organization.id}>
                {organization.name}
              </option>,
              ...organization.workspaces.nodes.map(({ id, name }) => (
                <option key={id} value={`${organization.id} ${id}`}>
                  {organization.name} / {name}
                </option>
              )),
            ])}
          </select>
        </label>
        <button type="submit">{t.notifications.mute}</button>
      </form>
    </section>
  );
}
