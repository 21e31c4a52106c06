import { InvalidArgumentError } from 'commander';

/** The number in an option. @throws InvalidArgumentError for what is no positive number */
export function countOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a positive number.');
  return Number(text);
}
