import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { AppsDocument } from '../generated/documents';
import { useCreating } from '../ground/asked';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty } from '../ground/problem';
import { Rows } from '../ground/rows';
import { Time } from '../ground/time';
import { t } from '../texts';

const Recipes = lazy(() => import('./recipes').then(({ Recipes: component }) => ({ default: component })));

/** The apps of a workspace. */
export function Apps(): ReactNode {
  const { orgId, workspaceId, may } = usePlace();
  const [isChoosing, setChoosing] = useCreating(may('recipe:apply'));
  const list = usePages(AppsDocument, { orgId, workspaceId }, ({ apps }) => apps);
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.apps}</h1>
        {may('recipe:apply') && (
          <button type="button" className="primary" onClick={() => setChoosing(true)}>
            {t.recipes.choose}
          </button>
        )}
      </header>
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
      {isChoosing && (
        <Suspense>
          <Recipes onClose={() => setChoosing(false)} />
        </Suspense>
      )}
    </>
  );
}
