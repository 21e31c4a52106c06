import { EVENT_COLUMNS, type StreamEvent } from '../data/outbox.ts';
import type { Sql } from '../data/sql.ts';
import type { Position } from './position.ts';

const PAGE_SIZE = 200;
/**
 * How far back a reader may resume (defaults §10): as long as it missed no event that is older, nor more events than
 * that.
 */
const WINDOW = { hours: 24, events: 10_000 };

const WHERE = (workspace: string) => `e.org_id = $1 and ${workspace}
  and (e.xid, e.seq) > ($3::xid8, $4::bigint) and (e.xid, e.seq) <= ($5::xid8, $6::bigint)`;

const PAGE = (missed: string) =>
  `select ${EVENT_COLUMNS} from events e where ${missed} order by e.xid, e.seq limit ${PAGE_SIZE}`;

/**
 * A position is of no use when nothing can be there yet (it comes from another database, or is made up), when what lay
 * there is older than every event that is kept, and when it is out of the window.
 */
const IS_LOST = (missed: string) => `select ($3::xid8, $4::bigint) > (pg_snapshot_xmin(pg_current_snapshot()), 0)
    or coalesce((select (e.xid, e.seq) > ($3::xid8, $4::bigint) from events e order by e.xid, e.seq limit 1), true)
    or coalesce((select e.timestamp < now() - interval '${WINDOW.hours} hours' from events e
      where ${missed} order by e.xid, e.seq limit 1), false)
    or exists (select 1 from events e where ${missed} order by e.xid, e.seq offset ${WINDOW.events} limit 1) as "isLost"`;

const textsOf = (workspace: string) => ({ page: PAGE(WHERE(workspace)), isLost: IS_LOST(WHERE(workspace)) });
const TEXTS = {
  workspace: textsOf('e.workspace_id = $2'),
  organization: textsOf('e.workspace_id is null and $2::text is null'),
};
const textsFor = ({ workspaceId }: StreamedPlace) => (workspaceId === null ? TEXTS.organization : TEXTS.workspace);

/** What a stream is about: a workspace, or, where it names none, the organization itself. */
export interface StreamedPlace {
  orgId: string;
  workspaceId: string | null;
}

/** What a reader that comes back has missed. */
export class MissedEvents {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether not everything behind a position can be given any more. */
  async isLost(place: StreamedPlace, from: Position, until: Position): Promise<boolean> {
    const [answer] = await this.#sql.read<{ isLost: boolean }>(textsFor(place).isLost, parameters(place, from, until));
    return answer!.isLost;
  }

  /** The events behind `from`, up to and with `until`; read page by page, as fast as they are taken. */
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
