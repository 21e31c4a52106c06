const HEAD = /^# (?:HELP|TYPE) (\S+)/;

const END = '# EOF';

/** One metric of an exposition: its two comments, and the lines of its values. */
interface Family {
  head: string[];
  values: string[];
}

/**
 * Expositions of several processes in the format of OpenMetrics as one: the values of a metric stand together, below
 * its help and type. Each process gives its values a label of its own, so none is added to another one.
 */
export function mergedMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) {
    let family: Family | undefined;
    let isKnown = false;
    for (const line of text.split('\n')) {
      const name = HEAD.exec(line)?.[1];
      if (name === undefined) {
        if (line !== '' && line !== END) family?.values.push(line);
        continue;
      }
      if (line.startsWith('# HELP')) isKnown = families.has(name);
      family = families.get(name) ?? { head: [], values: [] };
      families.set(name, family);
      if (!isKnown) family.head.push(line);
    }
  }
  const lines = [...families.values()].flatMap(({ head, values }) => [...head, ...values]);
  return `${[...lines, END].join('\n')}\n`;
}
