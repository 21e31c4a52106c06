import { useEffect, useState } from 'react';
import { Provider, useQuery } from 'urql';
import { Badge } from './badge';
import { clientOf, URL_OF_SERVICE } from './client';
import { type LoginMutation, MyOrganizationsDocument } from './generated/documents';
import { Problem } from './problem';
import { Session } from './session';
import { SignIn } from './sign-in';
import { WorkspaceList } from './workspace-list';
import { WorkspacePage } from './workspace-page';

type Login = LoginMutation['login'];

interface SignedIn {
  readonly username: string;
  readonly connection: ReturnType<typeof clientOf>;
}

export function App() {
  const [signedIn, setSignedIn] = useState<SignedIn>();
  const begin = (login: Login) => {
    const end = () => {
      connection.close();
      setSignedIn(undefined);
    };
    const connection = clientOf(new Session(login, URL_OF_SERVICE, end));
    setSignedIn({ username: login.user.username, connection });
  };
  if (!signedIn) return <SignIn onSignedIn={begin} />;
  return (
    <Provider value={signedIn.connection.client}>
      <Pages username={signedIn.username} />
    </Provider>
  );
}

/** The page of the address: `#org_…/ws_…` is that workspace, and `#org_…` the list of that organization. */
function Pages({ username }: { username: string }) {
  const [orgId, workspaceId] = useHash().split('/');
  const [{ data, error }] = useQuery({ query: MyOrganizationsDocument });
  const organizations = data?.organizations.nodes ?? [];
  const organization = organizations.find(({ id }) => id === orgId) ?? organizations[0];
  return (
    <>
      <header>
        <select
          aria-label="Organization"
          value={organization?.id}
          onChange={(event) => {
            location.hash = event.currentTarget.value;
          }}
        >
          {organizations.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        {organization && <a href={`#${organization.id}`}>Workspaces</a>}
        <span>{username}</span>
        <Badge />
      </header>
      <main>
        <Problem error={error} />
        {organization &&
          (workspaceId ? (
            <WorkspacePage key={workspaceId} orgId={organization.id} id={workspaceId} />
          ) : (
            <WorkspaceList key={organization.id} orgId={organization.id} />
          ))}
      </main>
    </>
  );
}

const hashNow = () => location.hash.slice(1);

function useHash(): string {
  const [hash, setHash] = useState(hashNow);
  useEffect(() => {
    const changed = () => setHash(hashNow());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return hash;
}
