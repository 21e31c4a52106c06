import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { AppsDocument } from '../generated/documents';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty } from '../ground/problem';
import { Rows } from '../ground/rows';
import { Time } from '../ground/time';
import { t } from '../texts/en';

/** The apps of a workspace. */
export function Apps(): ReactNode {
  const { orgId, workspaceId } = usePlace();
  const list = usePages(AppsDocument, { orgId, workspaceId }, ({ apps }) => apps);
  return (
    <>
      <h1>{t.sections.apps}</h1>
      <Rows
        label={t.sections.apps}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.apps.none}>{t.apps.noneHint}</Empty>}
        columns={[
          {
            label: t.name,
            cell: ({ id, name }) => (
              <Link to="/o/$org/w/$ws/apps/$app" params={{ org: orgId, ws: workspaceId, app: id }}>
                {name}
              </Link>
            ),
          },
          { label: t.description, isExtra: true, cell: ({ description }) => description },
          { label: t.changed, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
        ]}
      />
    </>
  );
}
