import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react';
import { t } from '../texts';
import type { Pages } from './pages';
import { Loading, Problem } from './problem';

interface Column<Row> {
  label: string;
  cell: (row: Row) => ReactNode;
  /** Whether narrow screens leave it out. */
  isExtra?: boolean;
}

const LINE = 44;

/** A list of any length: the rows that the window shows are drawn, and the next page comes when its end is near. */
export function Rows<Row>({
  label,
  list,
  columns,
  idOf,
  empty,
}: {
  label: string;
  list: Pages<Row> & { more: () => void };
  columns: readonly Column<Row>[];
  idOf: (row: Row) => string;
  empty: ReactNode;
}) {
  const place = useRef<HTMLDivElement>(null);
  const { rows, hasMore, isLoading, error, more } = list;
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => LINE,
    overscan: 12,
    scrollMargin: place.current?.offsetTop ?? 0,
    getItemKey: (at) => idOf(rows[at]!),
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && !isLoading && last >= rows.length - 20) more();
  }, [hasMore, isLoading, last, rows.length, more]);
  if (error && rows.length === 0) return <Problem error={error} />;
  if (rows.length === 0) return isLoading ? <Loading /> : empty;
  const template = { '--columns': columns.length } as CSSProperties;
  const classOf = (column: Column<Row>) => (column.isExtra ? 'extra' : '');
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows of a table cannot be placed where a scroll position wants them
    <div role="table" aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + 1} className="rows">
      {/* biome-ignore lint/a11y/useSemanticElements: see above */}
      <div role="rowgroup">
        {/* biome-ignore lint/a11y/useSemanticElements: see above */}
        <div role="row" className="head line" style={template} tabIndex={-1}>
          {columns.map((column) => (
            // biome-ignore lint/a11y/useSemanticElements: see above
            <span role="columnheader" key={column.label} className={classOf(column)} tabIndex={-1}>
              {column.label}
            </span>
          ))}
        </div>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: see above */}
      <div role="rowgroup" ref={place} className="body" style={{ height: virtual.getTotalSize() }}>
        {shown.map((item) => (
          // biome-ignore lint/a11y/useSemanticElements: see above
          <div
            role="row"
            key={item.key}
            aria-rowindex={item.index + 2}
            data-index={item.index}
            ref={virtual.measureElement}
            className="line"
            tabIndex={-1}
            style={{ ...template, transform: `translateY(${item.start - virtual.options.scrollMargin}px)` }}
          >
            {columns.map((column) => (
              // biome-ignore lint/a11y/useSemanticElements: see above
              <span role="cell" key={column.label} className={classOf(column)} data-label={column.label}>
                {column.cell(rows[item.index]!)}
              </span>
            ))}
          </div>
        ))}
      </div>
      {isLoading && <Loading />}
      <Problem error={error} />
      {!hasMore && !isLoading && rows.length > 20 && <p className="quiet">{t.allShown(rows.length)}</p>}
    </div>
  );
}
