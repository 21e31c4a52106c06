/** What one check has found. */
export interface DoctorFinding {
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
  run(): Promise<Omit<DoctorFinding, 'check'>[]>;
}

export const ok = (message: string): Omit<DoctorFinding, 'check'> => ({ status: 'ok', message, remedy: null });
export const warn = (message: string, remedy: string): Omit<DoctorFinding, 'check'> => ({
  status: 'warn',
  message,
  remedy,
});
export const fail = (message: string, remedy: string): Omit<DoctorFinding, 'check'> => ({
  status: 'fail',
  message,
  remedy,
});

/** The check's findings; its failure is one of them. */
export async function findingsOf(check: Check): Promise<DoctorFinding[]> {
  try {
    return (await check.run()).map((found) => ({ check: check.name, ...found }));
  } catch (error) {
    const message = error instanceof AggregateError ? String(error.errors[0]) : String(error);
    return [{ check: check.name, ...fail(message.replace(/^Error: /, ''), check.remedy) }];
  }
}
