import { Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { CreateWorkspaceDocument, ShellDocument, type ShellQuery } from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { FormDialog } from '../ground/form';
import { atLeast } from '../ground/permissions';
import { Empty, Loading, Problem } from '../ground/problem';
import { t } from '../texts';

type Organization = ShellQuery['me']['organizations']['nodes'][number];

/** The organizations and workspaces of the reader. */
export function Chooser(): ReactNode {
  const { data, error } = useAnswer(ShellDocument, {});
  useEffect(() => {
    document.title = t.console;
  }, []);
  return (
    <main id="main" tabIndex={-1} className="narrow">
      <h1>{t.chooser.title}</h1>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data?.me.organizations.nodes.length === 0 && <Empty title={t.chooser.none}>{t.chooser.noneHint}</Empty>}
      {data?.me.organizations.nodes.map((organization) => (
        <OrganizationCard key={organization.id} organization={organization} />
      ))}
    </main>
  );
}

function OrganizationCard({ organization }: { organization: Organization }) {
  const [isCreating, setCreating] = useState(false);
  const { id, name, role, workspaces } = organization;
  return (
    <section className="card" aria-label={name}>
      <header className="toolbar">
        <h2 className="grow">{name}</h2>
        <span className="tag">{t.roles[role]}</span>
        {atLeast(role, 'admin') && (
          <button type="button" onClick={() => setCreating(true)}>
            {t.chooser.create}
          </button>
        )}
      </header>
      {workspaces.nodes.length === 0 && <p className="quiet">{t.chooser.noWorkspace}</p>}
      <ul className="links">
        {workspaces.nodes.map((workspace) => (
          <li key={workspace.id}>
            <Link to="/o/$org/w/$ws" params={{ org: id, ws: workspace.id }}>
              {workspace.name}
            </Link>
          </li>
        ))}
      </ul>
      {workspaces.pageInfo.hasNextPage && <p className="quiet">{t.chooser.first(workspaces.nodes.length)}</p>}
      {isCreating && <NewWorkspace orgId={id} onClose={() => setCreating(false)} />}
    </section>
  );
}

function NewWorkspace({ orgId, onClose }: { orgId: string; onClose: () => void }) {
  const create = useChange(CreateWorkspaceDocument);
  const navigate = useNavigate();
  return (
    <FormDialog
      title={t.chooser.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true },
        { name: 'description', label: t.description, kind: 'lines' },
      ]}
      onSave={async ({ name = '', description }) => {
        const result = await create({
          orgId,
          input: { organizationId: orgId, name, ...(description && { description }) },
        });
        const made = result.data?.createWorkspace;
        if (made) void navigate({ to: '/o/$org/w/$ws', params: { org: orgId, ws: made.id } });
        return result;
      }}
    />
  );
}
