import type { Prisma } from '../generated/prisma/client.ts';

type InputValue<Value> = Prisma.JsonValue extends Value ? Prisma.InputJsonObject : Value;

/** The properties of a row that an input may set. Each may be omitted or null; the schema says which may not. */
export type Given<Row, Keys extends keyof Row> = { [Key in Keys]?: InputValue<Row[Key]> | null | undefined };

/** The properties that have a value. */
export const withoutNull = <Input extends object>(given: Input | null | undefined) =>
  Object.fromEntries(Object.entries(given ?? {}).filter(([, value]) => value !== null && value !== undefined)) as {
    [Key in keyof Input]?: NonNullable<Input[Key]>;
  };
