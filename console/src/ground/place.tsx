import { Link } from '@tanstack/react-router';
import { createContext, type ReactNode, use, useEffect, useRef, useState } from 'react';
import type { CombinedError } from 'urql';
import { MyRoleDocument, PlaceDocument, type PlaceQuery, ShellDocument } from '../generated/documents';
import type { Role } from '../generated/permissions';
import { t } from '../texts';
import { useAnswer } from './answers';
import { askPastCache } from './client';
import { ConfirmAddress } from './confirm-address';
import { useNames } from './filters';
import { keptUploads } from './kept-uploads';
import { AGAIN_MS, isRefusal } from './passing';
import { atLeast, effectiveRole, isAllowed, isAllowedInOrganization, type Permission, type Roles } from './permissions';
import { Loading, Problem } from './problem';
import { reached } from './reached';
import { showPlace } from './shown-place';

export interface Place {
  orgId: string;
  workspaceId: string;
  workspace: PlaceQuery['workspace'];
  organization: PlaceQuery['organization'];
  me: PlaceQuery['me'];
  roles: Roles;
  may: (permission: Permission, options?: { isOwn?: boolean }) => boolean;
  /** What the role in the organization allows: for what belongs to no workspace. */
  mayInOrganization: (permission: Permission) => boolean;
}

const PlaceContext = createContext<Place | null>(null);

/** The workspace that the address names, who the reader is and what they may do there. */
export function usePlace(): Place {
  const place = use(PlaceContext);
  if (!place) throw new Error('This view is in no workspace.');
  return place;
}

/**
 * Looks the caller up among the members of a workspace, whose list has no filter.
 * @throws Error when the service neither answers nor refuses
 */
async function roleAmongMembers(orgId: string, workspaceId: string, userId: string): Promise<Role | null> {
  for (let after: string | null = null; ; ) {
    const answer: Awaited<ReturnType<typeof askForMembers>> = await askForMembers(orgId, workspaceId, after);
    const { data, problem, code } = answer;
    if (!data && isRefusal(code)) return null;
    if (!data) throw new Error(problem);
    const { nodes, pageInfo } = data.workspaceMembers;
    const mine = nodes.find((member) => member.userId === userId);
    if (mine) return mine.role;
    if (!pageInfo.hasNextPage) return null;
    after = pageInfo.endCursor;
  }
}

const askForMembers = (orgId: string, workspaceId: string, after: string | null) =>
  askPastCache(MyRoleDocument, { orgId, workspaceId, after });

export function PlaceProvider({ children }: { children: ReactNode }) {
  const { org: orgId = '', ws: workspaceId = '' } = useNames();
  const { data: shell, error: shellError } = useAnswer(ShellDocument, {}, { isFresh: false });
  if (shell) reached.begin(shell.eventCursor, [orgId, workspaceId]);
  const options = { isFresh: false, isWaiting: !shell };
  const { data: latest, error } = useAnswer(PlaceDocument, { orgId, workspaceId }, options);
  // when it cannot be read again, the views stay with what was read before
  const kept = useRef<PlaceQuery | undefined>(undefined);
  if (latest) kept.current = latest;
  const data = kept.current?.workspace.id === workspaceId ? kept.current : undefined;
  const [member, setMember] = useState<{ key: string; role: Role | null } | null>(null);
  const key = `${orgId} ${workspaceId} ${data?.me.id ?? ''}`;
  const organizationRole = data?.organization.role;
  const userId = data?.me.id;
  useEffect(() => {
    if (!organizationRole || !userId || atLeast(organizationRole, 'admin')) return;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      try {
        const role = await roleAmongMembers(orgId, workspaceId, userId);
        if (!isOver) setMember({ key, role });
      } catch {
        // whoever is not known to be a member would have too few rights
        if (!isOver) timer = setTimeout(() => void look(), AGAIN_MS);
      }
    };
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [key, organizationRole, userId, orgId, workspaceId]);
  useEffect(() => {
    if (userId) keptUploads.forgetOthers(userId);
  }, [userId]);
  const problem = error ?? shellError;
  if (problem && !data) return <NoPlace error={problem} />;
  if (!data) return <Loading />;
  const { me, organization, workspace } = data;
  const isKnown = atLeast(organization.role, 'admin') || member?.key === key;
  if (!isKnown) return <Loading />;
  const mine = member?.key === key ? member.role : null;
  const roles: Roles = { organization: organization.role, workspace: effectiveRole(organization.role, mine) };
  const may = (permission: Permission, options?: { isOwn?: boolean }) => isAllowed(roles, permission, options);
  const mayInOrganization = (permission: Permission) => isAllowedInOrganization(roles, permission);
  document.title = `${workspace.name} · ${t.console}`;
  const place = { orgId, workspaceId, workspace, organization, me, roles, may, mayInOrganization };
  return (
    <PlaceContext value={place}>
      <Shown place={place} />
      {children}
    </PlaceContext>
  );
}

/** Why there is no such workspace for the reader, and where they find others. */
function NoPlace({ error }: { error: CombinedError }) {
  return (
    <main id="main" tabIndex={-1} className="narrow">
      <Problem error={error} />
      <ConfirmAddress />
      <p>
        <Link to="/">{t.chooser.other}</Link>
      </p>
    </main>
  );
}

/** Tells what is around the views which workspace they show. */
function Shown({ place }: { place: Place }) {
  useEffect(() => {
    showPlace(place);
    return () => showPlace(null);
  }, [place]);
  return null;
}
