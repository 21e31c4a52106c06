import { brokenUnique } from '../../data/changes.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import type { AppNamespacePlace } from '../../kernel/checked-place.ts';
import type { Entity } from './entity.reads.ts';
import { findAlike, type Identity, type Match, Matches } from './entity-matching.ts';

/** The entity that was asked for, and whether it was made for it. */
export interface ResolvedEntity {
  entity: Entity;
  created: boolean;
  /** How it was found; `null` if it was created. */
  matchedBy: string | null;
}

/** Looks for the entity that a given one is. */
export async function matchOf(
  reads: QueryRunner,
  place: AppNamespacePlace,
  identity: Pick<Identity, 'name' | 'entityType' | 'identityKey' | 'metadata'>,
): Promise<Match<Identity> | null> {
  return new Matches(await findAlike(reads, place, [identity])).of(identity);
}

/**
 * Finds, or creates: whoever finds that somebody else has just created it finds it then.
 * @param find looks without a lock
 * @param create creates it, or says what it found once nobody else could create it
 */
export async function findOrCreate(
  find: () => Promise<Match<Identity> | null>,
  create: () => Promise<{ id: string; match: Match<Identity> | null }>,
): Promise<{ id: string; match: Match<Identity> | null }> {
  const match = await find();
  if (match) return { id: match.entity.id, match };
  try {
    return await create();
  } catch (error) {
    if (!brokenUnique(error)) throw error;
    const made = await find();
    if (!made) throw error;
    return { id: made.entity.id, match: made };
  }
}
