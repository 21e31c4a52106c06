import { Counter, Gauge, type OpenMetricsContentType, type Registry } from 'prom-client';

/** What is read when somebody asks for the metrics. */
type Read<Value> = () => Value;

/** Adds to a registry what others know. */
export class Figures {
  readonly registry: Registry<OpenMetricsContentType>;

  constructor(registry: Registry<OpenMetricsContentType>) {
    this.registry = registry;
  }

  /** A number that rises and falls. */
  gauge(name: string, help: string, read: Read<number | Promise<number>>): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      async collect() {
        this.set(await read());
      },
    });
  }

  /** What somebody else has counted. */
  counter(name: string, help: string, read: Read<number>): void {
    new Counter({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  /** The same by one label. */
  counts(name: string, help: string, label: string, read: Read<Iterable<readonly [string, number]>>): void {
    new Counter({
      name,
      help,
      labelNames: [label],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const [value, count] of read()) this.inc({ [label]: value }, count);
      },
    });
  }
}
