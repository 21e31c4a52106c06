import { randomBytes } from 'node:crypto';
import { tokenHash } from '../../access/random-token.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';

const COUNT = 10;
/** 80 bits: a plain hash of so many cannot be searched. */
const BYTES = 10;
/** Without letters and digits that look alike. */
const LETTERS = 'abcdefghjkmnpqrstvwxyz0123456789';

/** Four groups of four characters. */
export const RECOVERY_CODE = /^[a-z0-9]{16}$/;

function newCode(): string {
  const bits = [...randomBytes(BYTES)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return bits
    .match(/.{5}/g)!
    .map((group) => LETTERS[Number.parseInt(group, 2)])
    .join('');
}

const hashOf = (userId: string, code: string): string => tokenHash(`${userId} ${code}`);

/** Gives a user ten new recovery codes. Earlier ones end. @returns them, as they are shown this once */
export function renewRecoveryCodes(tx: Tx, userId: string): string[] {
  const codes = Array.from({ length: COUNT }, newCode);
  const hashes = codes.map((code) => hashOf(userId, code));
  tx.write(statement`delete from recovery_codes where user_id = ${userId}`);
  tx.write(statement`insert into recovery_codes (hash, user_id) select unnest(${hashes}::text[]), ${userId}`);
  return codes.map((code) => code.match(/.{4}/g)!.join('-'));
}

/** Uses a recovery code up. @param code without spaces and hyphens @returns whether it was one of the user's */
export async function useRecoveryCode(tx: Tx, userId: string, code: string): Promise<boolean> {
  const used = await tx.query(
    statement`delete from recovery_codes where hash = ${hashOf(userId, code)} and user_id = ${userId} returning hash`,
  );
  return used.length > 0;
}
