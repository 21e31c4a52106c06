import { EVENT_COLUMNS, type StreamEvent } from '../data/outbox.ts';
import type { Sql } from '../data/sql.ts';
import type { Position } from './position.ts';

const PAGE_SIZE = 200;
/**
 * How far back a reader may resume (defaults §10): if it missed no event that is older, and no more events than this.
 */
const WINDOW = { hours: 24, events: 10_000 };

const WHERE = (workspace: string) => `e.org_id = $1 and ${workspace}
  and (e.xid, e.seq) > ($3::xid8, $4::bigint) and (e.xid, e.seq) <= ($5::xid8, $6::bigint)`;

const PAGE = (missed: string) =>
  `select ${EVENT_COLUMNS} from events e where ${missed} order by e.xid, e.seq limit ${PAGE_SIZE}`;

/**
 * A position is lost when it is in the future (from another database, or made up), when it is older than every stored
 * event, or when it is outside the window.
 */
const IS_LOST = (missed: string) => `select ($3::xid8, $4::bigint) > (pg_snapshot_xmin(pg_current_snapshot()), 0)
    or coalesce((select (e.xid, e.seq) > ($3::xid8, $4::bigint) from events e order by e.xid, e.seq limit 1), true)
    or coalesce((select e.timestamp < now() - interval '${WINDOW.hours} hours' from events e
      where ${missed} order by e.xid, e.seq limit 1), false)
    or exists (select 1 from events e
      where ${missed} order by e.xid, e.seq offset ${WINDOW.events} limit 1) as "isLost"`;

const textsOf = (workspace: string) => ({ page: PAGE(WHERE(workspace)), isLost: IS_LOST(WHERE(workspace)) });
const TEXTS = {
  workspace: textsOf('e.workspace_id = $2'),
  organization: textsOf('e.workspace_id is null and $2::text is null'),
};
const textsFor = ({ workspaceId }: StreamedPlace) => (workspaceId === null ? TEXTS.organization : TEXTS.workspace);

/** The subject of a stream: a workspace, or the organization itself if it names no workspace. */
export interface StreamedPlace {
  orgId: string;
  workspaceId: string | null;
  /** The stream is of what is addressed to this user alone, in any place. It cannot resume. */
  userId?: string;
}

/** The events that a resuming reader has missed. */
export class MissedEvents {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether some event after a position is no longer available. */
  async isLost(place: StreamedPlace, from: Position, until: Position): Promise<boolean> {
    const [answer] = await this.#sql.read<{ isLost: boolean }>(textsFor(place).isLost, parameters(place, from, until));
    return answer!.isLost;
  }

  /** The events after `from`, up to and including `until`, read page by page as they are consumed. */
  async *between(place: StreamedPlace, from: Position, until: Position): AsyncGenerator<StreamEvent, void> {
    for (let at: Position | undefined = from; at; ) {
      const rows: StreamEvent[] = await this.#sql.read<StreamEvent>(textsFor(place).page, parameters(place, at, until));
      yield* rows;
      at = rows.length === PAGE_SIZE ? rows.at(-1) : undefined;
    }
  }
}

const parameters = ({ orgId, workspaceId }: StreamedPlace, from: Position, until: Position): unknown[] => [
  orgId,
  workspaceId,
  from.xid,
  from.seq,
  until.xid,
  until.seq,
];
