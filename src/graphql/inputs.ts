import type { InputRef } from '@pothos/core';
import { type Constraints, MAX_ID_LENGTH, OPEN_WORD } from '../kernel/constraints.ts';
import { builder } from './builder.ts';

/** Bounds that many inputs share (defaults §0.5). */
export const bounds = {
  name: { minLength: 1, maxLength: 255 },
  /** A name that an update may omit, but not clear. */
  keptName: { minLength: 1, maxLength: 255, notNull: true },
  description: { maxLength: 4_000 },
  tags: { maxItems: 50, item: { minLength: 1, maxLength: 64 }, notNull: true },
  id: { minLength: 1, maxLength: 128 },
  /** A value of an open set (defaults §0.3). */
  open: { pattern: OPEN_WORD },
  slug: { pattern: '[a-z0-9]+(?:-[a-z0-9]+)*', maxLength: 64 },
  /** A text that names an object in a path. */
  key: { maxLength: MAX_ID_LENGTH },
  /** Where to continue in a list or a stream. */
  cursor: { maxLength: 512 },
} as const satisfies Record<string, Constraints>;

/** What declares the fields of an input type: for fields that several have. */
export type InputFields = PothosSchemaTypes.InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>;

/** The `input` argument of a mutation. */
export const inputArg = <Shape>(type: InputRef<Shape>, description = 'The changes.') =>
  builder.args((t) => ({ input: t.field({ type, required: true, description }) }));
