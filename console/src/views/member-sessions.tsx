import { type ReactNode, useState } from 'react';
import { EndMemberSessionsDocument, MemberSessionsDocument, type MemberSessionsQuery } from '../generated/documents';
import { useChange } from '../ground/answers';
import { FormDialog } from '../ground/form';
import { usePages } from '../ground/pages';
import { atLeast } from '../ground/permissions';
import { usePlace } from '../ground/place';
import { Rows } from '../ground/rows';
import { Time } from '../ground/time';
import { useWhileSeen } from '../ground/while-seen';
import { t } from '../texts';

type Session = MemberSessionsQuery['memberSessions']['nodes'][number];
type Ending = { session: Session; isAll: boolean };

const whoOf = ({ user, userId }: Session): string => user?.username ?? userId;
const browserOf = ({ browser, system }: Session): string =>
  browser && system ? t.memberSessions.browserOn(browser, system) : t.memberSessions.program;
const wayOf = ({ method, identityProvider }: Session): string =>
  identityProvider?.name ?? t.memberSessions.ways[method];

/** The open sessions of the members, for those who may end them. Nothing tells of new ones: the list is read again. */
export function MemberSessions(): ReactNode {
  const { orgId, roles } = usePlace();
  const list = usePages(MemberSessionsDocument, { orgId }, ({ memberSessions }) => memberSessions);
  useWhileSeen(list.again);
  const [ending, setEnding] = useState<Ending | null>(null);
  return (
    <section aria-labelledby="sessions">
      <h2 id="sessions">{t.memberSessions.title}</h2>
      <p className="quiet">{t.memberSessions.hint}</p>
      <Rows<Session>
        label={t.memberSessions.title}
        list={list}
        idOf={({ sessionId }) => sessionId}
        empty={<p className="quiet">{t.memberSessions.none}</p>}
        columns={[
          { label: t.who, cell: whoOf },
          {
            label: t.memberSessions.browser,
            cell: (session) => (
              <>
                {browserOf(session)} {session.isCurrent && <span className="tag ok">{t.memberSessions.current}</span>}
              </>
            ),
          },
          { label: t.memberSessions.way, isExtra: true, cell: wayOf },
          { label: t.memberSessions.since, isExtra: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            label: t.memberSessions.used,
            isExtra: true,
            cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : t.never),
          },
          {
            label: t.memberSessions.address,
            isExtra: true,
            cell: ({ address }) => address ?? t.memberSessions.unknown,
          },
          {
            label: '',
            // nobody ends what somebody with a role above their own has open
            cell: (session) =>
              atLeast(roles.organization, session.role) && (
                <span className="actions">
                  {!session.isCurrent && (
                    <button
                      type="button"
                      className="small"
                      aria-label={t.memberSessions.endOne(browserOf(session), whoOf(session))}
                      onClick={() => setEnding({ session, isAll: false })}
                    >
                      {t.memberSessions.end}
                    </button>
                  )}
                  <button
                    type="button"
                    className="small danger"
                    aria-label={t.memberSessions.endAllOf(whoOf(session))}
                    onClick={() => setEnding({ session, isAll: true })}
                  >
                    {t.memberSessions.endAll}
                  </button>
                </span>
              ),
          },
        ]}
      />
      {ending && <EndSessions {...ending} onClose={() => setEnding(null)} />}
    </section>
  );
}

function EndSessions({ session, isAll, onClose }: Ending & { onClose: () => void }) {
  const { orgId } = usePlace();
  const end = useChange(EndMemberSessionsDocument);
  const { userId, sessionId } = session;
  const title = isAll
    ? t.memberSessions.endAllOf(whoOf(session))
    : t.memberSessions.endOne(browserOf(session), whoOf(session));
  return (
    <FormDialog
      title={title}
      action={isAll ? t.memberSessions.endAll : t.memberSessions.end}
      onClose={onClose}
      fields={[]}
      onSave={() => end({ orgId, userId, sessionId: isAll ? null : sessionId })}
    >
      <p>{t.memberSessions.endHint}</p>
    </FormDialog>
  );
}
