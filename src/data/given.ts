import type { Prisma } from '../generated/prisma/client.ts';

type Input<Value> = Prisma.JsonValue extends Value ? Prisma.InputJsonObject : Value;

/**
 * What an input may give of a row: some of its properties, each of which may be left out or be null. The schema says
 * which may not.
 */
export type Given<Row, Keys extends keyof Row> = { [Key in Keys]?: Input<Row[Key]> | null | undefined };

/** What was given a value. */
export const withoutNull = <Input extends object>(given: Input | null | undefined) =>
  Object.fromEntries(Object.entries(given ?? {}).filter(([, value]) => value !== null && value !== undefined)) as {
    [Key in keyof Input]?: NonNullable<Input[Key]>;
  };
