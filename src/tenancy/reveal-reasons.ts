import { type InputError, invalidInput } from '../kernel/errors.ts';
import { demandsRevealReason } from './views.ts';

/** Of the argument `reason` of what shows a secret. */
export const reasonBounds = { minLength: 1, maxLength: 500 } as const;

/** A row if an organization demands a reason: `$1`. */
export const REASON_DEMANDED = `select 1 where ${demandsRevealReason('$1')}`;

/** The reason of a reveal as its record has it. */
export const givenReason = (reason?: string | null): { reason?: string } =>
  typeof reason === 'string' ? { reason } : {};

/** Whether a reason was given. Blanks say nothing. */
export const isReason = (reason?: string | null): boolean => typeof reason === 'string' && reason.trim() !== '';

/** The refusal of a reveal without a reason. */
export const reasonMissing = (): InputError =>
  invalidInput(['reason'], 'the organization wants to know why the value is read');
