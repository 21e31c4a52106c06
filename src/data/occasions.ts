import type { AnyCaller } from '../kernel/caller.ts';
import type { Place } from '../kernel/place.ts';
import type { ResourceWord } from '../kernel/resources.ts';
import type { Task } from '../kernel/tasks.ts';
import type { QueryRunner } from './find-row.ts';

/** What notifications say beyond the ids of an occasion. Never stored in the outbox. */
export interface Facts {
  /** Whom it concerns, if neither its resource nor its place says so. */
  userIds?: readonly string[];
  /** What the resource is called. */
  name?: string;
  /** What it belongs to, such as the tool of a connection. */
  of?: string;
  /** The user whom the text names. */
  namedUserId?: string;
  /** The role before and after. */
  before?: string;
  after?: string;
  /** The identity provider that did it at a sign-in: its user did not. */
  provider?: string;
  /** Why it happened. */
  reason?: string;
  expiresAt?: Date | null;
  daysLeft?: number;
  /** The applications that still act for a user. */
  applications?: { readonly names: readonly string[]; readonly total: number };
  /** The API tokens that a user still has. */
  tokens?: { readonly names: readonly string[]; readonly total: number };
  /** The resource that it takes the place of. */
  replacedId?: string;
  /** It follows from another occasion of the same change, which is announced instead. */
  isConsequence?: boolean;
}

/**
 * What may concern somebody personally: an event, or something that no stream sends, such as a new password.
 * Notifications are made of it.
 */
export interface Occasion extends Place {
  /** `<resource>.<happened>`. */
  type: string;
  /** `null` for what is about an account itself. */
  orgId: string | null;
  workspaceId?: string | null;
  resourceType: ResourceWord;
  resourceId: string;
  data?: Record<string, unknown>;
  facts?: Facts | undefined;
}

/** The part of a transaction that makes notifications. */
export interface Notifying extends QueryRunner {
  enqueue<Payload extends object>(task: Task<Payload>, payload: Payload): void;
}

/**
 * Makes the notifications of a change, in its transaction. `null`, without any statement, if its occasions concern
 * nobody.
 */
export type Notify = (tx: Notifying, caller: AnyCaller, occasions: readonly Occasion[]) => Promise<void> | null;
