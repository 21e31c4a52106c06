import { useState } from 'react';
import { useQuery, useSubscription } from 'urql';
import { OrganizationEventsDocument, WorkspacePageDocument } from './generated/documents';
import { Problem } from './problem';

export function WorkspaceList({ orgId }: { orgId: string }) {
  const [pages, setPages] = useState(1);
  useSubscription({ query: OrganizationEventsDocument, variables: { orgId } });
  return (
    <>
      <h1>Workspaces</h1>
      <ul>
        <Page orgId={orgId} after={null} pages={pages} onMore={() => setPages(pages + 1)} />
      </ul>
    </>
  );
}

interface PageProps {
  orgId: string;
  after: string | null;
  /** How many pages to show from here on. */
  pages: number;
  onMore: () => void;
}

/**
 * One page and those after it. Each begins where the one before ends *now*: when a new row comes at the top, the row
 * that leaves a page appears on the next, and none is lost between them.
 */
function Page({ orgId, after, pages, onMore }: PageProps) {
  const variables = { orgId, after, isFirst: after === null };
  const [{ data, error }] = useQuery({ query: WorkspacePageDocument, variables });
  const page = data?.workspaces;
  if (!page) return <Problem error={error} />;
  const { endCursor, hasNextPage } = page.pageInfo;
  return (
    <>
      {page.totalCount !== undefined && <li className="total">{page.totalCount} in all</li>}
      {page.nodes.map(({ id, name }) => (
        <li key={id}>
          <a href={`#${orgId}/${id}`}>{name}</a>
        </li>
      ))}
      {hasNextPage && pages > 1 && <Page orgId={orgId} after={endCursor ?? null} pages={pages - 1} onMore={onMore} />}
      {hasNextPage && pages === 1 && (
        <li>
          <button type="button" onClick={onMore}>
            More
          </button>
        </li>
      )}
    </>
  );
}
