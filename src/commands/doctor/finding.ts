/** What one check has found. */
export interface Finding {
  check: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
  /** What to do about it; `null` when nothing is to be done. */
  remedy: string | null;
}

/** A check: all that it found. One that throws has failed with that message. */
export interface Check {
  name: string;
  /** What to do when it throws. */
  remedy: string;
  run(): Promise<Omit<Finding, 'check'>[]>;
}

export const ok = (message: string): Omit<Finding, 'check'> => ({ status: 'ok', message, remedy: null });
export const warn = (message: string, remedy: string): Omit<Finding, 'check'> => ({ status: 'warn', message, remedy });
export const fail = (message: string, remedy: string): Omit<Finding, 'check'> => ({ status: 'fail', message, remedy });

/** The check's findings; its failure is one of them. */
export async function findingsOf(check: Check): Promise<Finding[]> {
  try {
    return (await check.run()).map((found) => ({ check: check.name, ...found }));
  } catch (error) {
    const message = error instanceof AggregateError ? String(error.errors[0]) : String(error);
    return [{ check: check.name, ...fail(message.replace(/^Error: /, ''), check.remedy) }];
  }
}
