import { notFound } from '../core/errors.ts';
import type { Tx } from '../data/changes.ts';
import { type Statement, statement } from '../data/writes.ts';

const heldNamespace = (id: string): Statement => statement`select 1 from namespaces where id = ${id} for key share`;

/** The same as {@link holdNamespace}, together with what else the change writes. */
export const demandNamespace = (tx: Tx, id: string): void =>
  tx.demand(heldNamespace(id), () => notFound('namespace', id));

/** Holds a namespace until the transaction ends, so that something can be put into it. @throws RESOURCE_NOT_FOUND when it is gone */
export async function holdNamespace(tx: Tx, id: string): Promise<void> {
  const rows = await tx.query(heldNamespace(id));
  if (rows.length === 0) throw notFound('namespace', id);
}
