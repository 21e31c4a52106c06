import type { SealedCredential } from '../../vault/secrets/credentials.ts';

/** Columns of a credential that is read with what it is of; its name begins them. */
const SEALED = {
  Id: 'id',
  OrgId: 'org_id',
  RootKeyId: 'root_key_id',
  WrappedKey: 'wrapped_key',
  Version: 'version',
  Ciphertext: 'ciphertext',
} as const;

/** A row that was read with a credential. */
export type Sealed<Name extends string> = { [Key in keyof typeof SEALED as `${Name}${Key}`]: unknown };

/** The columns of the credential that a statement calls by a name, by the properties of the row. */
export const sealedColumns = <Name extends string>(name: Name): Record<keyof Sealed<Name>, string> =>
  Object.fromEntries(Object.entries(SEALED).map(([key, column]) => [`${name}${key}`, `${name}.${column}`])) as Record<
    keyof Sealed<Name>,
    string
  >;

/** The credential in a row; `null` for an outer join that found none. */
export function sealedIn<Name extends string>(row: Sealed<Name>, name: Name): SealedCredential | null {
  const found = row as Readonly<Record<string, unknown>>;
  const [id, orgId, rootKeyId, wrappedKey, version, ciphertext] = Object.keys(SEALED).map(
    (key) => found[`${name}${key}`],
  );
  return id === null ? null : ({ id, orgId, rootKeyId, wrappedKey, version, ciphertext } as SealedCredential);
}
