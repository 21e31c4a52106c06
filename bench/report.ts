import { median, type Sample } from './load.ts';

const spread = (values: readonly number[]) =>
  `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)}-${Math.max(...values).toFixed(2)})`;

/** Prints the results of each server, relative to the first one in the same rounds. */
export function print(title: string, samples: ReadonlyMap<string, Sample[]>): void {
  console.log(`\n${title}`);
  const [base] = samples.values() as Iterable<Sample[]> as [Sample[]];
  for (const [name, list] of samples) {
    const rps = median(list.map((sample) => sample.rps)).toFixed(0);
    const micros = median(list.map((sample) => sample.cpuMicros)).toFixed(0);
    const p99 = median(list.map((sample) => sample.p99Ms)).toFixed(0);
    const cpu = median(list.map((sample, round) => sample.cpuMicros / base[round]!.cpuMicros)).toFixed(2);
    const ratio = spread(list.map((sample, round) => sample.rps / base[round]!.rps));
    console.log(
      `  ${name.padEnd(8)} ${rps.padStart(6)} requests/s  ratio ${ratio}  ` +
        `CPU ${micros.padStart(5)} us/request, ratio ${cpu}  p99 ${p99} ms`,
    );
  }
  const prisma = samples.get('prisma');
  const product = samples.get('product')!;
  if (prisma) {
    const ratio = median(product.map((sample, round) => sample.rps / prisma[round]!.rps)).toFixed(2);
    console.log(`  product / prisma: ${ratio} of its requests/s`);
  }
}

/** Prints how two kinds of requests to the same server compare, round by round. */
export function printRatio(title: string, a: readonly Sample[], b: readonly Sample[]): void {
  const rps = spread(a.map((sample, round) => sample.rps / b[round]!.rps));
  const cpu = spread(a.map((sample, round) => sample.cpuMicros / b[round]!.cpuMicros));
  console.log(`  ${title}: ${rps} of the requests/s, ${cpu} times the CPU`);
}
