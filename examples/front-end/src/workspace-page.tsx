import { useMutation, useQuery, useSubscription } from 'urql';
import {
  PresenceDocument,
  RenameWorkspaceDocument,
  WorkspaceDocument,
  WorkspaceEventsDocument,
  type WorkspaceQuery,
} from './generated/documents';
import { Problem } from './problem';

export function WorkspacePage({ orgId, id }: { orgId: string; id: string }) {
  const [{ data, error }] = useQuery({ query: WorkspaceDocument, variables: { orgId, id } });
  const [events] = useSubscription({ query: WorkspaceEventsDocument, variables: { orgId, workspaceId: id } });
  return (
    <>
      <Problem error={error ?? events.error} />
      {data && <Workspace orgId={orgId} workspace={data.workspace} />}
      <Present orgId={orgId} workspaceId={id} />
    </>
  );
}

function Workspace({ orgId, workspace }: { orgId: string; workspace: WorkspaceQuery['workspace'] }) {
  const { id, name, resourceVersion } = workspace;
  const [{ error }, rename] = useMutation(RenameWorkspaceDocument);
  return (
    <>
      <h1>{name}</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const value = new FormData(event.currentTarget).get('name');
          if (typeof value !== 'string') return;
          // the version that the user saw: whoever changed it in between is not overwritten
          void rename({ orgId, id, expectedVersion: resourceVersion, input: { name: value } });
        }}
      >
        <label>
          Name
          <input key={name} name="name" defaultValue={name} required />
        </label>
        <button type="submit">Rename</button>
        <Problem error={error} />
      </form>
    </>
  );
}

function Present({ orgId, workspaceId }: { orgId: string; workspaceId: string }) {
  const [{ data }] = useSubscription({ query: PresenceDocument, variables: { orgId, workspaceId } });
  return (
    <section aria-label="Present">
      <h2>Present</h2>
      <ul>
        {data?.presence.map(({ userId, username }) => (
          <li key={userId}>{username}</li>
        ))}
      </ul>
    </section>
  );
}
