import type { Place } from '../../kernel/place.ts';
import type { ResourceWord } from '../../kernel/resources.ts';

/** What a user looks at, and the place of it. */
export interface Viewed extends Place {
  orgId: string;
  resourceType: ResourceWord;
  resourceId: string;
}

/** A user who is present in a workspace. */
export interface PresentUser {
  orgId: string;
  userId: string;
  username: string;
  joinedAt: Date;
  viewing: Viewed | null;
}
