import { type ReactNode, useState } from 'react';
import {
  CreateInvitationDocument,
  InvitationsDocument,
  type InvitationsQuery,
  MembersDocument,
  type MembersQuery,
  RemoveMemberDocument,
  ResendInvitationDocument,
  RevokeInvitationDocument,
  UpdateMemberDocument,
} from '../generated/documents';
import { permissions, type Role, roles } from '../generated/permissions';
import { useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { ConfirmAddress } from '../ground/confirm-address';
import { ConfirmDialog } from '../ground/dialog';
import { FormDialog } from '../ground/form';
import { usePages } from '../ground/pages';
import { atLeast, grantOf, type Permission } from '../ground/permissions';
import { usePlace } from '../ground/place';
import { Empty, faultOf, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { Time } from '../ground/time';
import { t } from '../texts';
import { MemberSessions } from './member-sessions';

type Member = MembersQuery['organizationMembers']['nodes'][number];
type Invitation = InvitationsQuery['invitations']['nodes'][number];

/** Who is in the organization, who was invited, and what each role may do. */
export function People(): ReactNode {
  const { roles: mine, mayInOrganization } = usePlace();
  const mayManage = atLeast(mine.organization, 'admin');
  const [isInviting, setInviting] = useCreating(mayManage);
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.people}</h1>
        {mayManage && (
          <button type="button" className="primary" onClick={() => setInviting(true)}>
            {t.people.invite}
          </button>
        )}
      </header>
      <Members mayManage={mayManage} />
      {mayManage && <Invitations />}
      {mayInOrganization('organization_member:delete') && <MemberSessions />}
      <RoleTable />
      {isInviting && <Invite onClose={() => setInviting(false)} />}
    </>
  );
}

function Members({ mayManage }: { mayManage: boolean }) {
  const { orgId, me, roles: mine } = usePlace();
  const list = usePages(MembersDocument, { orgId }, ({ organizationMembers }) => organizationMembers);
  const update = useChange(UpdateMemberDocument);
  const [problem, setProblem] = useState('');
  const [leaving, setLeaving] = useState<Member | null>(null);
  // nobody gives or takes a role above their own
  const mayChange = ({ userId, role }: Member) => mayManage && userId !== me.id && atLeast(mine.organization, role);
  const change = async ({ userId, resourceVersion }: Member, role: Role) => {
    const { error } = await update({ orgId, userId, role, expectedVersion: resourceVersion });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <section aria-labelledby="members">
      <h2 id="members">{t.people.members}</h2>
      <Problem message={problem} />
      <Rows
        label={t.people.members}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.people.none} />}
        columns={[
          { label: t.name, cell: ({ username, fullName }) => (fullName ? `${fullName} (${username})` : username) },
          { label: t.people.email, isExtra: true, cell: ({ email }) => email },
          {
            label: t.people.role,
            cell: (member) =>
              mayChange(member) ? (
                <select
                  aria-label={t.people.roleOf(member.username)}
                  value={member.role}
                  onChange={(event) => void change(member, event.target.value as Role)}
                >
                  {roles
                    .filter((role) => atLeast(mine.organization, role))
                    .map((role) => (
                      <option key={role} value={role}>
                        {t.roles[role]}
                      </option>
                    ))}
                </select>
              ) : (
                t.roles[member.role]
              ),
          },
          { label: t.people.since, isExtra: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            label: '',
            cell: (member) =>
              mayChange(member) && (
                <button
                  type="button"
                  className="small"
                  aria-label={t.people.removeOne(member.username)}
                  onClick={() => setLeaving(member)}
                >
                  {t.people.remove}
                </button>
              ),
          },
        ]}
      />
      {leaving && <RemoveMember member={leaving} onClose={() => setLeaving(null)} />}
    </section>
  );
}

function RemoveMember({ member: { userId, username }, onClose }: { member: Member; onClose: () => void }) {
  const { orgId } = usePlace();
  const remove = useChange(RemoveMemberDocument);
  return (
    <ConfirmDialog
      title={t.people.removeOne(username)}
      name={username}
      action={t.people.remove}
      onClose={onClose}
      onConfirm={() => remove({ orgId, userId })}
    >
      <p>{t.people.removeHint}</p>
    </ConfirmDialog>
  );
}

function Invitations() {
  const { orgId } = usePlace();
  const list = usePages(InvitationsDocument, { orgId }, ({ invitations }) => invitations ?? emptyList);
  const resend = useChange(ResendInvitationDocument);
  const revoke = useChange(RevokeInvitationDocument);
  const [problem, setProblem] = useState('');
  const [sentTo, setSentTo] = useState('');
  const run = async (change: ReturnType<typeof resend> | ReturnType<typeof revoke>, email = '') => {
    const { error } = await change;
    setProblem(error ? faultOf(error).message : '');
    setSentTo(error ? '' : email);
  };
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">{t.people.invitations}</h2>
      <Problem message={problem} />
      <p role="status">{sentTo && t.people.resent(sentTo)}</p>
      <Rows<Invitation>
        label={t.people.invitations}
        list={list}
        idOf={({ id }) => id}
        empty={<p className="quiet">{t.people.noInvitations}</p>}
        columns={[
          { label: t.people.email, cell: ({ email }) => email },
          { label: t.people.role, isExtra: true, cell: ({ role }) => t.roles[role] },
          {
            label: t.status,
            cell: ({ status }) => (
              <span className={status === 'accepted' ? 'tag ok' : 'tag'}>{t.people.status[status]}</span>
            ),
          },
          { label: t.people.until, isExtra: true, cell: ({ expiresAt }) => <Time at={expiresAt} /> },
          {
            label: '',
            cell: ({ id, status, email }) =>
              status === 'pending' && (
                <>
                  <button
                    type="button"
                    className="small"
                    aria-label={t.people.resendTo(email)}
                    onClick={() => void run(resend({ orgId, id }), email)}
                  >
                    {t.people.resend}
                  </button>{' '}
                  <button
                    type="button"
                    className="small"
                    aria-label={t.people.revokeOf(email)}
                    onClick={() => void run(revoke({ orgId, id }))}
                  >
                    {t.people.revoke}
                  </button>
                </>
              ),
          },
        ]}
      />
    </section>
  );
}

const emptyList = { nodes: [], pageInfo: { endCursor: null, hasNextPage: false } };

function Invite({ onClose }: { onClose: () => void }) {
  const { orgId, workspaceId, roles: mine } = usePlace();
  const create = useChange(CreateInvitationDocument);
  const choices = roles
    .filter((role) => role !== 'owner' && atLeast(mine.organization, role))
    .map((role) => ({ value: role, label: t.roles[role] }));
  return (
    <FormDialog
      title={t.people.invite}
      action={t.people.send}
      onClose={onClose}
      fields={[
        { name: 'email', label: t.people.email, isRequired: true },
        {
          name: 'role',
          label: t.people.roleInOrganization,
          kind: 'choice',
          isRequired: true,
          value: 'member',
          choices,
        },
        { name: 'workspaceRole', label: t.people.roleHere, kind: 'choice', value: 'editor', choices },
      ]}
      onSave={({ email = '', role, workspaceRole }) =>
        create({
          orgId,
          input: {
            email,
            role: role as Role,
            ...(workspaceRole && { workspaceId, workspaceRole: workspaceRole as Role }),
          },
        })
      }
    >
      <ConfirmAddress />
    </FormDialog>
  );
}

const names = Object.keys(permissions) as Permission[];

/** What may whom, from the very table that the service decides by. */
function RoleTable() {
  return (
    <details className="card">
      <summary>{t.people.table}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard */}
      <section className="wide-table" tabIndex={0} aria-label={t.people.table}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t.people.permission}</th>
              {roles.map((role) => (
                <th scope="col" key={role}>
                  {t.roles[role]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                {roles.map((role) => (
                  <td key={role}>{t.people.grants[grantOf(role, name)]}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}
