import { EVENT_COLUMNS, type StreamEvent } from '../../data/outbox.ts';
import type { Sql } from '../../data/sql.ts';
import { organizationRoleSince, workspaceRolesSince } from '../../tenancy/views.ts';
import type { Position } from './position.ts';

const PAGE_SIZE = 200;
/**
 * How far back a reader may resume (defaults §10): if it missed no event that is older, and no more events than this.
 */
const WINDOW = { hours: 24, events: 10_000 };

// what is addressed to others is not missed: it would use up the window
const WHERE = (place: string) => `e.org_id = $1 and ${place} and (e.recipient_id is null or e.recipient_id = $5)
  and (e.xid, e.seq) > ($3::xid8, $4::bigint)`;

const PAGE = (missed: string) =>
  `select ${EVENT_COLUMNS} from events e where ${missed} and (e.xid, e.seq) <= ($6::xid8, $7::bigint)
    order by e.xid, e.seq limit ${PAGE_SIZE}`;

/**
 * A position is lost when it is in the future (made up, or of a cluster that went back), when its event is not there
 * (it was committed on a primary whose last commits its successor lacks), when it is older than every stored event, or
 * when it is outside the window. The window of a reader begins with the role in the place, at the earliest: what
 * happened before was not for the reader, whatever cursor it has. What a running transaction holds back, and the live
 * events will bring, counts as well.
 */
const IS_LOST = (missed: string, since: string) =>
  `select ($3::xid8, $4::bigint) > (pg_snapshot_xmin(pg_current_snapshot()), 0)
    or $4::bigint > 0 and not exists (select from events e where e.xid = $3::xid8 and e.seq = $4::bigint)
    or coalesce((select (e.xid, e.seq) > ($3::xid8, $4::bigint) from events e order by e.xid, e.seq limit 1), true)
    or coalesce((select e.timestamp from events e where ${missed} order by e.xid, e.seq limit 1)
      < greatest(now() - interval '${WINDOW.hours} hours', (select max(s.updated_at) from (${since}) s)), false)
    or exists (select 1 from events e
      where ${missed} order by e.xid, e.seq offset ${WINDOW.events} limit 1) as "isLost"`;

const textsOf = (place: string, since: string) => ({
  page: PAGE(WHERE(place)),
  isLost: IS_LOST(WHERE(place), since),
});
const TEXTS = {
  workspace: textsOf('e.workspace_id = $2', workspaceRolesSince('$1', '$2', '$5')),
  organization: textsOf('e.workspace_id is null and $2::text is null', organizationRoleSince('$1', '$5')),
};
const textsFor = ({ workspaceId }: StreamedPlace) => (workspaceId === null ? TEXTS.organization : TEXTS.workspace);

/** The subject of a stream: a workspace, or the organization itself if it names no workspace. */
export interface StreamedPlace {
  orgId: string;
  workspaceId: string | null;
  /** The stream is of what is addressed to this user alone, in any place. It cannot resume. */
  userId?: string;
}

/** Somebody who reads a place. */
export interface PlaceReader extends StreamedPlace {
  readerId: string;
}

/** The events that a resuming reader has missed. */
export class MissedEvents {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether some event after a position is not available to the reader, or no longer. */
  async isLost(reader: PlaceReader, from: Position): Promise<boolean> {
    const { isLost } = textsFor(reader);
    const [answer] = await this.#sql.read<{ isLost: boolean }>(isLost, parameters(reader, from));
    return answer!.isLost;
  }

  /** The events after `from`, up to and including `until`, read page by page as they are consumed. */
  async *between(reader: PlaceReader, from: Position, until: Position): AsyncGenerator<StreamEvent, void> {
    const { page } = textsFor(reader);
    for (let at: Position | undefined = from; at; ) {
      const rows: StreamEvent[] = await this.#sql.read<StreamEvent>(page, [
        ...parameters(reader, at),
        until.xid,
        until.seq,
      ]);
      yield* rows;
      at = rows.length === PAGE_SIZE ? rows.at(-1) : undefined;
    }
  }
}

const parameters = ({ orgId, workspaceId, readerId }: PlaceReader, { xid, seq }: Position): unknown[] => [
  orgId,
  workspaceId,
  xid,
  seq,
  readerId,
];
